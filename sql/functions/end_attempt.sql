-- rowferry.end_attempt(attempt_id bigint, verdict text, error text)
--   Closes an attempt that came to nothing while its worker lived: RELEASED (given back) or LOST (the connection went
--   away). Neither counts, and neither is taken for a crash.
--   Does nothing to an attempt that has its verdict already.
--   Writes: batch_attempt. Called by: rowferry_worker/slot.py, on the ledger's own connection, where the batch's
--   transaction was rolled back; rowferry_worker/verdict.py, in that transaction, where it commits other batches.
create or replace function rowferry.end_attempt(attempt_id bigint, verdict text, error text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.batch_attempt as a
    set verdict = $2, error = $3, finished_at = clock_timestamp()
    where a.id = $1 and a.verdict is null and $2 in ('RELEASED', 'LOST');
$$;
