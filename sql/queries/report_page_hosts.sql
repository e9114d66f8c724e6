-- `rowferry report --html`: what each host did in each queue.

-- name: page_batches
-- One row a queue and host whose worker took a batch last: finished batches, how often they were tried, their entries.
-- `deep`: batches whose pass read the bytes of both objects.
with by_worker as (
    select
        q.queue_name,
        q.worker_id,
        count(*) as batches,
        count(*) filter (where q.attempts = 2) as tried_twice,
        count(*) filter (where q.attempts > 2) as tried_more,
        count(*) filter (where q.requeues > 0) as requeued,
        count(*) filter (where q.payload ->> 'deep' = 'true') as deep,
        sum(q.migrated + q.kept + q.changed + q.deleted)::bigint as settled,
        sum(q.missing + q.conflict + q.failed)::bigint as unsettled,
        sum(q.bytes)::bigint as bytes,
        min(q.started_at) as began_at,
        max(q.finished_at) as ended_at,
        max(q.finished_at - q.started_at) as longest
    from rowferry.batch_queue as q
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status in ('DONE', 'ERROR')
        and q.finished_at is not null
    group by q.queue_name, q.worker_id
)

select
    b.queue_name as queue,
    coalesce(w.host, regexp_replace(b.worker_id, ':[^:]*:[^:]*$', ''), '') as host,
    sum(b.batches)::bigint as batches,
    sum(b.tried_twice)::bigint as tried_twice,
    sum(b.tried_more)::bigint as tried_more,
    sum(b.requeued)::bigint as requeued,
    sum(b.deep)::bigint as deep,
    sum(b.settled)::bigint as settled,
    sum(b.unsettled)::bigint as unsettled,
    sum(b.bytes)::bigint as bytes,
    min(b.began_at) as began_at,
    max(b.ended_at) as ended_at,
    max(b.longest) as longest
from by_worker as b
left join rowferry.worker as w on b.worker_id = w.id
group by 1, 2
order by 1, 2
limit %(limit)s;

-- name: page_attempts
-- One row a queue and host: the attempts of its workers by verdict. Of those without one, `running` are of live workers
-- and `crashed` of others. `versions`: of its workers that the database still knows. For `report_settings`.
with by_worker as (
    select
        q.queue_name,
        a.worker_id,
        count(*) as attempts,
        count(*) filter (where a.verdict = 'DONE') as done,
        count(*) filter (where a.verdict = 'ERROR') as error,
        count(*) filter (where a.verdict = 'RETRY') as retry,
        count(*) filter (where a.verdict = 'RELEASED') as released,
        count(*) filter (where a.verdict = 'LOST') as lost,
        count(*) filter (where a.verdict is null) as open,
        min(a.started_at) as began_at,
        max(coalesce(a.finished_at, a.started_at)) as ended_at
    from rowferry.batch_attempt as a
    inner join rowferry.batch_queue as q on a.batch_id = q.id
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
    group by q.queue_name, a.worker_id
)

select
    t.queue_name as queue,
    coalesce(w.host, regexp_replace(t.worker_id, ':[^:]*:[^:]*$', '')) as host,
    count(*) as processes,
    coalesce((array_agg(distinct w.version) filter (where w.version is not null))[1:9], array[]::text []) as versions,
    sum(t.attempts)::bigint as attempts,
    sum(t.done)::bigint as done,
    sum(t.error)::bigint as error,
    sum(t.retry)::bigint as retry,
    sum(t.released)::bigint as released,
    sum(t.lost)::bigint as lost,
    coalesce(sum(t.open) filter (where l.id is not null), 0)::bigint as running,
    coalesce(sum(t.open) filter (where l.id is null), 0)::bigint as crashed,
    min(t.began_at) as began_at,
    max(t.ended_at) as ended_at
from by_worker as t
left join rowferry.worker as w on t.worker_id = w.id
left join rowferry.live_workers as l on t.worker_id = l.id
group by 1, 2
order by 1, 2
limit %(limit)s;
