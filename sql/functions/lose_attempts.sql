-- Closes as LOST the attempts of a worker at these batches that it does not know of: begin_attempt's result was lost
-- with the connection. They do not count, nor as crashes; others' attempts, and those with a verdict, stay as they
-- are. The caller makes sure that the lost statement has ended, and begins no attempt at these batches before.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: batch_attempt. Called by: rowferry_worker/attempts.py, on the ledger's own connection.
create or replace function rowferry.lose_attempts(p_batch_ids bigint [], p_worker_id text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(p_worker_id);

    update rowferry.batch_attempt as a
    set verdict = 'LOST', error = 'the connection was lost before it began', finished_at = clock_timestamp()
    where a.worker_id = p_worker_id and a.batch_id = any(p_batch_ids) and a.finished_at is null and a.verdict is null;
$$;
