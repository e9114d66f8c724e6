-- rowferry.lose_attempts(batch_ids bigint[], worker_id text)
--   Closes as LOST what a worker began at these batches without ever hearing of it: the answer of begin_attempt was
--   lost with its connection. The attempts neither count, nor are they taken for crashes.
--   Does nothing to attempts that have their verdict, or are other workers'.
--   The caller sees to it that what it lost has ended, and that nobody of its own begins an attempt at these batches
--   before: neither an attempt that is recorded late nor one that is under way may be taken for another.
--   Writes: batch_attempt. Called by: rowferry_worker/claim.py, on the ledger's own connection.
create or replace function rowferry.lose_attempts(batch_ids bigint [], worker_id text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.batch_attempt as a
    set verdict = 'LOST', error = 'the connection was lost before it began', finished_at = clock_timestamp()
    where a.worker_id = $2 and a.batch_id = any($1) and a.finished_at is null and a.verdict is null;
$$;
