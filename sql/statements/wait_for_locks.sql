-- An enqueue of hundreds of millions of entries takes a while, and the next one waits for its turn.
select set_config('lock_timeout', '0', true)
