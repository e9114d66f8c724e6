-- Counting a queue of millions of batches takes longer than a role or a database may allow. Locks wait as usual.
select set_config('statement_timeout', '0', true)
