-- Returns what is known of a fault that has just ended an attempt at a batch, and may be of its whole migration:
-- `is_own`: another batch of the same queue has succeeded since this one first met it, so that it is the batch's own;
-- `waiting`: batches of the migration that are INIT, this one among them, at most 10;
-- `others_run`: attempts at other batches of its queue, which began longer than `p_due_for` ago, go on at live workers.
-- `p_due_for`: for how long the faults that the worker has met are enough for a pause: such attempts come to an end.
-- Writes: nothing. Called by: rowferry_worker/batch/run.py.
create or replace function rowferry.judge_fault(
    p_batch_id bigint, p_requeues integer, p_error text, p_due_for interval
)
returns table (is_own boolean, waiting integer, others_run boolean)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select
        exists (
            select
            from rowferry.batch_queue as o
            where
                o.migration_id = q.migration_id
                and o.queue_name = q.queue_name
                and o.status = 'DONE'
                and o.finished_at > (
                    select min(a.finished_at)
                    from rowferry.batch_attempt as a
                    where
                        a.batch_id = p_batch_id
                        and a.requeues = p_requeues
                        and a.error = p_error
                        and a.started_at >= q.created_at
                )
        ),
        (
            select count(*)::integer
            from (
                select
                from rowferry.batch_queue as w
                where w.migration_id = q.migration_id and w.status = 'INIT'
                limit 10
            ) as l
        ),
        exists (
            select
            from rowferry.batch_attempt as a
            inner join rowferry.worker as w on a.worker_id = w.id
            inner join rowferry.batch_queue as o on a.batch_id = o.id
            where
                a.finished_at is null
                and a.batch_id <> p_batch_id
                and o.migration_id = q.migration_id
                and o.queue_name = q.queue_name
                and w.stopped_at is null
                and w.last_seen_at > statement_timestamp() - interval '30 seconds'
                and a.started_at < statement_timestamp() - p_due_for
        )
    from rowferry.batch_queue as q
    where q.id = p_batch_id;
$$;
