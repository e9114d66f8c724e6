-- `rowferry report --html`: what the page says beside the report. Each query returns a bounded number of rows, however
-- many batches there are.

-- name: page_migration
-- The migration and its server. `worked`: for how long at least one attempt with a result ran; null without any.
select
    m.created_at,
    m.revision,
    m.switched_at,
    m.plan,
    now() as moment,
    current_database() as database,
    current_setting('server_version') as postgres,
    (
        select format('%%s, %%s', v.number, v.name)
        from rowferry.schema_migration as v
        order by v.number desc
        limit 1
    ) as schema_version,
    (
        select sum(a.finished_at - greatest(a.started_at, a.before))
        from (
            select
                t.started_at,
                t.finished_at,
                max(t.finished_at) over (
                    order by t.started_at, t.id rows between unbounded preceding and 1 preceding
                ) as before
            from rowferry.batch_attempt as t
            inner join rowferry.batch_queue as q on t.batch_id = q.id
            where t.verdict in ('DONE', 'ERROR', 'RETRY') and q.migration_id = m.id
        ) as a
        where a.finished_at > coalesce(greatest(a.started_at, a.before), a.started_at)
    ) as worked
from rowferry.migration as m
where m.name = %(migration)s;

-- name: page_hosts
-- One row a queue and host: the attempts of its workers by verdict, and the finished batches that they took last; and
-- one a queue, with a null host: their sums. Of the attempts without a verdict, `running` are of live workers and
-- `crashed` of others. `versions`: of workers that the database still knows; `deep`: batches whose pass read the bytes
-- of both objects;
-- `total`: rows without the limit. The sums come first, then crashes. Reads all attempts.
with tried as (
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
        min(a.started_at) as first_try_at,
        max(coalesce(a.finished_at, a.started_at)) as last_try_at
    from rowferry.batch_attempt as a
    inner join rowferry.batch_queue as q on a.batch_id = q.id
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
    group by q.queue_name, a.worker_id
),

finished as (
    select
        q.queue_name,
        q.worker_id,
        count(*) as batches,
        count(*) filter (where q.payload ->> 'deep' = 'true') as deep,
        sum(q.migrated + q.kept + q.changed + q.deleted) as settled,
        sum(q.missing + q.conflict + q.failed) as unsettled,
        max(q.finished_at - q.started_at) as longest,
        min(q.started_at) as began_at,
        max(q.finished_at) as ended_at
    from rowferry.batch_queue as q
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status in ('DONE', 'ERROR')
        and q.finished_at is not null
    group by q.queue_name, q.worker_id
)

select
    t.queue_name as queue,
    t.host,
    count(distinct t.worker_id) filter (where t.attempts > 0) as processes,
    coalesce((array_agg(distinct t.version) filter (where t.version is not null))[1:9], '{{}}') as versions,
    coalesce(sum(t.attempts), 0)::bigint as attempts,
    coalesce(sum(t.done), 0)::bigint as done,
    coalesce(sum(t.error), 0)::bigint as error,
    coalesce(sum(t.retry), 0)::bigint as retry,
    coalesce(sum(t.released), 0)::bigint as released,
    coalesce(sum(t.lost), 0)::bigint as lost,
    coalesce(sum(t.open) filter (where t.is_live), 0)::bigint as running,
    coalesce(sum(t.open) filter (where not t.is_live), 0)::bigint as crashed,
    coalesce(sum(t.batches), 0)::bigint as batches,
    coalesce(sum(t.deep), 0)::bigint as deep,
    coalesce(sum(t.settled), 0)::bigint as settled,
    coalesce(sum(t.unsettled), 0)::bigint as unsettled,
    max(t.longest) as longest,
    min(least(t.first_try_at, t.began_at, t.last_try_at, t.ended_at)) as began_at,
    max(greatest(t.last_try_at, t.ended_at)) as ended_at,
    max(greatest(t.last_try_at, t.ended_at)) - min(least(t.first_try_at, t.began_at, t.last_try_at, t.ended_at))
        as worked,
    min(t.began_at) as drawn_from,
    count(*) over () as total
from (
    select
        b.*,
        coalesce(w.host, regexp_replace(b.worker_id, ':[^:]*:[^:]*$', ''), '') as host,
        w.version,
        l.id is not null as is_live
    from (
        select *
        from tried
        full join finished using (queue_name, worker_id)
    ) as b
    left join rowferry.worker as w on b.worker_id = w.id
    left join rowferry.live_workers as l on b.worker_id = l.id
) as t
group by grouping sets ((t.queue_name, t.host), (t.queue_name))
order by grouping(t.host) desc, crashed desc, t.queue_name, settled desc, t.host
limit %(limit)s;

-- name: page_pace
-- Entries by interval and outcome: of attempts that ended in it. `queues`, `begins` and `steps` belong together. What
-- no attempt tells that is still there, such as that of a batch whose worker was killed, counts at the end of its
-- batch.
with steps as (
    select *
    from unnest(%(queues)s::text [], %(begins)s::timestamptz [], %(steps)s::interval [])
        as u (queue_name, begins_at, step)
),

tried as (
    select
        q.id as batch_id,
        q.queue_name,
        a.finished_at,
        o.key as outcome,
        o.value::bigint as entries
    from rowferry.batch_queue as q
    inner join rowferry.batch_attempt as a on q.id = a.batch_id
    cross join jsonb_each_text(a.outcomes) as o (key, value)
    where
        a.finished_at is not null
        and q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
),

untold as (
    select
        f.queue_name,
        f.finished_at,
        o.outcome,
        o.entries - coalesce(t.entries, 0) as entries
    from rowferry.finished_batches as f
    cross join lateral (
        values
        ('migrated', f.migrated),
        ('kept', f.kept),
        ('changed', f.changed),
        ('deleted', f.deleted),
        ('missing', f.missing),
        ('conflict', f.conflict),
        ('failed', f.failed)
    ) as o (outcome, entries)
    left join (
        select
            d.batch_id,
            d.outcome,
            sum(d.entries) as entries
        from tried as d
        group by d.batch_id, d.outcome
    ) as t on f.batch_id = t.batch_id and o.outcome = t.outcome
    where
        f.migration = %(migration)s
        and f.status in ('DONE', 'ERROR')
        and o.entries > coalesce(t.entries, 0)
)

select
    s.queue_name as queue,
    date_bin(s.step, e.finished_at, s.begins_at) as began_at,
    e.outcome,
    sum(e.entries)::bigint as entries
from steps as s
inner join (
    select
        t.queue_name,
        t.finished_at,
        t.outcome,
        t.entries
    from tried as t
    union all
    select *
    from untold
) as e on s.queue_name = e.queue_name
where e.entries > 0
group by 1, 2, 3
order by 1, 2, 3;

-- name: page_samples
-- Some entries of each of the most frequent reasons.
select s.*
from (
    select
        r.*,
        left(f.entry_id, 1000) as id,
        left(f.key, 4000) as key,
        left(f.error, 4000) as error,
        f.attempt,
        row_number() over (
            partition by r.queue_name, r.outcome, r.reason
            order by f.batch_id, f.entry_id
        ) as place
    from (
        select
            e.queue_name,
            e.outcome,
            e.reason
        from rowferry.error_reasons as e
        where e.migration = %(migration)s
        order by e.entries desc, e.outcome, e.reason
        limit %(limit)s
    ) as r
    inner join rowferry.entry_failure as f on r.outcome = f.outcome and r.reason = f.reason
    inner join rowferry.batch_queue as q on f.batch_id = q.id and r.queue_name = q.queue_name
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status = 'ERROR'
) as s
where s.place <= %(samples)s
order by s.queue_name, s.outcome, s.reason, s.place;

-- name: page_events
-- What happened to the migration, or to one queue of it, the newest first; and lost workers since it was stored, since
-- a worker serves all migrations.
select
    e.at,
    e.queue_name as queue,
    e.kind,
    left(e.text, 4000) as text
from rowferry.events as e
inner join rowferry.migration as m on m.name = %(migration)s
where coalesce(e.migration, m.name) = m.name and (e.migration is not null or e.at >= m.created_at)
order by e.at desc, e.queue_name, e.kind desc
limit %(limit)s;
