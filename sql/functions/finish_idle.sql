-- rowferry.finish_idle(batch_ids bigint[], attempt_ids bigint[])
--   Writes DONE for attempts that found nothing to do: no entry of their batches has the wanted form any more.
--   What earlier attempts have settled stays counted, unless the payload says in `read_again` that it was read again;
--   the failures that were open are over. It says what finish_batch would say of each.
--   Returns how many batches it has found: all of them, where the caller holds what it says.
--   Writes: batch_queue, batch_attempt, entry_failure. Called by: rowferry_worker/verdict.py, in the transaction that
--   holds the claims.
create or replace function rowferry.finish_idle(batch_ids bigint [], attempt_ids bigint [])
returns integer
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    delete from rowferry.entry_failure as f
    where f.batch_id = any($1) and f.outcome in ('missing', 'conflict', 'failed');

    with attempt as (
        update rowferry.batch_attempt as a
        set verdict = 'DONE', finished_at = clock_timestamp()
        from unnest($1, $2) as b (batch_id, attempt_id)
        where a.id = b.attempt_id and a.batch_id = b.batch_id
        returning a.batch_id, a.number, a.started_at, a.worker_id
    ),

    finished as (
        update rowferry.batch_queue as q
        set
            status = 'DONE',
            attempts = a.number,
            started_at = a.started_at,
            finished_at = clock_timestamp(),
            worker_id = a.worker_id,
            error = null,
            migrated = case when q.payload -> 'read_again' ? 'migrated' then 0 else q.migrated end,
            kept = case when q.payload -> 'read_again' ? 'kept' then 0 else q.kept end,
            missing = 0,
            conflict = 0,
            failed = 0,
            entry_count = q.changed + q.vanished
            + case when q.payload -> 'read_again' ? 'migrated' then 0 else q.migrated end
            + case when q.payload -> 'read_again' ? 'kept' then 0 else q.kept end
        from attempt as a
        where q.id = a.batch_id
        returning q.id
    )

    select count(*)::integer from finished;
$$;
