-- An enqueue of hundreds of millions of entries takes a while, whatever a role or a database allows to others, and the
-- next one waits for its turn.
select
    set_config('lock_timeout', '0', true),
    set_config('statement_timeout', '0', true)
