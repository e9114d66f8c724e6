-- The attempts without a verdict at batches that are not finished, of workers that gave a sign of life within ten
-- minutes: those that run, and those of dead workers. `in_hand`: the entries that the attempt has settled so far: their
-- objects stand, their rows and the verdict are still to be written. `reported_at`: when the worker last said how far
-- its batches are, once a second while that changes; `silent_for`: since its last sign of life. 10 seconds after that
-- it counts as dead, for processes that share its kernel as soon as it has ended; another worker takes the batch over.
-- `is_last`: no other worker has begun with the batch since; one that had to put it back has not.
create or replace view rowferry.open_attempts as
select
    a.id as attempt_id,
    q.id as batch_id,
    q.migration_id,
    q.queue_name,
    q.payload ->> 'entries' as label,
    q.entry_count,
    w.id as worker_id,
    w.host,
    w.pid,
    a.started_at,
    w.reported_at,
    greatest(
        least(coalesce((w.in_hand ->> a.id::text)::integer, 0), (rowferry.count_batch(q, 1)).waiting), 0
    )::integer as in_hand,
    now() - w.last_seen_at as silent_for,
    not exists (
        select from rowferry.batch_attempt as l
        where l.batch_id = a.batch_id and l.id > a.id and l.verdict is distinct from 'RELEASED'
    ) as is_last
from rowferry.worker as w
inner join rowferry.batch_attempt as a on w.id = a.worker_id and a.finished_at is null
inner join rowferry.batch_queue as q on a.batch_id = q.id and q.status = 'INIT'
where w.stopped_at is null and w.last_seen_at > now() - interval '10 minutes';
