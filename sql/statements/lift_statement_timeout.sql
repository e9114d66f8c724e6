-- To tally a queue of millions of batches takes a while, whatever a role or a database allows to others. Locks are not
-- waited for any longer than usual.
select set_config('statement_timeout', '0', true)
