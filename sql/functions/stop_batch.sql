-- rowferry.stop_batch(batch_id bigint, attempt_id bigint, error text)
--   Makes a claimed batch ERROR without its entries having been read: it killed its workers, or nobody can run it.
--   Its counts stay as they were; the entries not yet settled count as failed.
--   Writes: batch_queue, batch_attempt. Called by: rowferry_worker/verdict.py, in the transaction of the claim.
create or replace function rowferry.stop_batch(batch_id bigint, attempt_id bigint, error text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.batch_attempt as a
    set verdict = 'ERROR', error = $3, finished_at = clock_timestamp()
    where a.id = $2 and a.batch_id = $1;

    update rowferry.batch_queue as q
    set
        status = 'ERROR',
        attempts = a.number - 1,
        started_at = a.started_at,
        finished_at = clock_timestamp(),
        worker_id = a.worker_id,
        error = $3,
        failed = q.entry_count - q.migrated - q.kept - q.changed - q.vanished - q.missing - q.conflict
    from rowferry.batch_attempt as a
    where q.id = $1 and a.id = $2;
$$;
