-- Closes an attempt that came to nothing while its worker lived: RELEASED (put back) or LOST (the connection was
-- lost). Neither counts, and neither is a crash. Does nothing to an attempt that has its verdict.
-- Raises insufficient_privilege where another session is the attempt's worker (rowferry.check_worker).
-- Writes: batch_attempt. Called by: rowferry_worker/batch/run.py and rowferry_worker/slot.py, on the ledger's own
-- connection. The batch's transaction is rolled back.
create or replace function rowferry.end_attempt(p_attempt_id bigint, p_verdict text, p_error text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(a.worker_id)
    from rowferry.batch_attempt as a
    where a.id = p_attempt_id;

    update rowferry.batch_attempt as a
    set verdict = p_verdict, error = p_error, finished_at = clock_timestamp()
    where a.id = p_attempt_id and a.verdict is null and p_verdict in ('RELEASED', 'LOST');
$$;
