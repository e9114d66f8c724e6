-- `rowferry watch`: everything on the screen, read again and again.

-- name: watch_migration
-- The migration, whether it is paused, and the server's time.
select
    id,
    name,
    paused_at,
    pause_reason,
    clock_timestamp() as moment
from rowferry.migration
where name = %(migration)s;

-- name: watch_tables
-- The progress of each table.
select
    label,
    queue_name,
    batches,
    batches_init,
    batches_done,
    batches_error,
    entries,
    waiting,
    migrated,
    kept,
    changed,
    deleted,
    missing,
    conflict,
    failed,
    bytes
from rowferry.table_progress
where migration_id = %(id)s
order by queue_name, label;

-- name: watch_workers
-- One row a live worker and claimed batch; a worker without a batch has one row.
select
    w.id,
    w.host,
    w.pid,
    h.batch_id,
    h.migration,
    h.claimed_for
from rowferry.live_workers as w
left join rowferry.claimed_batches as h on w.id = h.worker_id
order by w.host, w.pid, w.id, h.started_at;

-- name: watch_errors
-- Why batches are in ERROR, the last failure first: of each queue.
select
    queue_name as queue,
    outcome,
    reason,
    entries,
    batches,
    left(coalesce(example_key, ''), 200) as example_key,
    last_failed_at
from rowferry.error_reasons
where migration = %(migration)s
order by last_failed_at desc, entries desc
limit 200;

-- name: watch_delayed
-- The batches that wait for their next attempt, when the first is due, and the error of most of them; one row a queue.
-- `next_at` is null where an operator has set every run_after to infinity. Asked by queue, with which the index of
-- waiting batches begins: batches that are due already are not read.
select
    q.queue_name as queue,
    count(*) as batches,
    nullif(min(q.run_after), 'infinity') as next_at,
    mode() within group (order by q.error) as error
from (
    select distinct t.queue_name
    from rowferry.table_progress as t
    where t.migration_id = %(id)s
) as u
inner join rowferry.batch_queue as q on u.queue_name = q.queue_name
where q.status = 'INIT' and q.run_after > statement_timestamp() and q.migration_id = %(id)s
group by q.queue_name;
