-- `rowferry report --html`: what the page says beside the report. Each query returns a bounded number of rows, however
-- many batches there are.

-- name: page_migration
-- The migration and its state, and the server.
select
    m.created_at,
    m.revision,
    s.state,
    s.since,
    s.cause,
    s.what_to_do,
    s.paused_at,
    s.pause_reason,
    s.seconds_left,
    s.done_share,
    s.need_somebody,
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
    ) as schema_version
from rowferry.migration as m
inner join rowferry.migration_state as s on m.id = s.migration_id
where m.name = %(migration)s;

-- name: page_queues
-- The queues of the chain in order, each with its state and how it is claimed.
select
    s.queue_name as queue,
    s.state,
    s.is_slowest,
    s.entries,
    s.done_share,
    s.batches_error,
    s.need_somebody,
    s.next,
    s.priority,
    s.weight,
    s.max_in_hand,
    s.paused_at
from rowferry.queue_status as s
where s.migration = %(migration)s
order by s.position;

-- name: page_pace
-- Entries by interval and outcome: of attempts that ended in it. `queues`, `begins` and `steps` belong together. What no
-- attempt tells that is still there, such as that of a batch whose worker was killed, counts at the end of its batch.
with steps as (
    select *
    from unnest(%(queues)s::text [], %(begins)s::timestamptz [], %(steps)s::interval [])
        as u (queue_name, begins_at, step)
),

mine as (
    select q.*
    from rowferry.batch_queue as q
    inner join steps as s on q.queue_name = s.queue_name
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
),

tried as (
    select
        q.id,
        q.queue_name,
        a.finished_at,
        o.key as outcome,
        o.value::bigint as entries
    from mine as q
    inner join rowferry.batch_attempt as a on q.id = a.batch_id
    cross join jsonb_each_text(a.outcomes) as o (key, value)
    where a.finished_at is not null
),

untold as (
    select
        q.queue_name,
        q.finished_at,
        o.outcome,
        o.entries - coalesce(t.entries, 0) as entries
    from mine as q
    cross join lateral (
        values
        ('migrated', q.migrated),
        ('kept', q.kept),
        ('changed', q.changed),
        ('deleted', q.deleted),
        ('missing', q.missing),
        ('conflict', q.conflict),
        ('failed', q.failed)
    ) as o (outcome, entries)
    left join (
        select
            d.id,
            d.outcome,
            sum(d.entries) as entries
        from tried as d
        group by d.id, d.outcome
    ) as t on q.id = t.id and o.outcome = t.outcome
    where
        q.status in ('DONE', 'ERROR')
        and q.finished_at is not null
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
    where t.entries > 0
    union all
    select *
    from untold
) as e on s.queue_name = e.queue_name
group by 1, 2, 3
order by 1, 2, 3;

-- name: page_worked
-- For how long at least one attempt with a result ran; null without any.
select sum(a.finished_at - greatest(a.started_at, a.before)) as worked
from (
    select
        t.started_at,
        t.finished_at,
        max(t.finished_at) over (
            order by t.started_at, t.id rows between unbounded preceding and 1 preceding
        ) as before
    from rowferry.batch_attempt as t
    inner join rowferry.batch_queue as q on t.batch_id = q.id
    where
        t.verdict in ('DONE', 'ERROR', 'RETRY')
        and q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
) as a
where a.finished_at > coalesce(greatest(a.started_at, a.before), a.started_at);

-- name: page_samples
-- Some entries of each of these reasons: `queues`, `outcomes` and `reasons` belong together.
select
    s.queue_name as queue,
    s.outcome,
    s.reason,
    s.label,
    s.batch_id as batch,
    s.entry_id as id,
    s.key,
    s.error,
    s.attempt,
    s.failed_at
from (
    select
        q.queue_name,
        f.outcome,
        f.reason,
        q.payload ->> 'entries' as label,
        f.batch_id,
        left(f.entry_id, 1000) as entry_id,
        left(f.key, 4000) as key,
        left(f.error, 4000) as error,
        f.attempt,
        f.failed_at,
        row_number() over (
            partition by q.queue_name, f.outcome, f.reason
            order by f.batch_id, f.entry_id
        ) as place
    from rowferry.batch_queue as q
    inner join rowferry.entry_failure as f on q.id = f.batch_id
    inner join unnest(%(queues)s::text [], %(outcomes)s::text [], %(reasons)s::text [])
        as r (queue_name, outcome, reason)
        on q.queue_name = r.queue_name and f.outcome = r.outcome and f.reason = r.reason
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status = 'ERROR'
) as s
where s.place <= %(limit)s
order by s.queue_name, s.outcome, s.reason, s.place;

-- name: page_retries
-- Why attempts ended without a result of their own, the most frequent first. `total`: how many there are without the limit.
select
    q.queue_name as queue,
    a.verdict,
    left(a.error, 4000) as error,
    count(*) as attempts,
    max(a.finished_at) as last_at,
    count(*) over () as total
from rowferry.batch_attempt as a
inner join rowferry.batch_queue as q on a.batch_id = q.id
where
    a.verdict in ('RETRY', 'RELEASED', 'LOST')
    and q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
group by q.queue_name, a.verdict, left(a.error, 4000)
order by attempts desc, queue, error
limit %(limit)s;

-- name: page_events
-- What happened to the migration, or to one queue of it, the newest first; and lost workers since it was stored, since a
-- worker serves all migrations.
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

-- name: page_passes
-- The newest passes over rows that stay.
select
    p.label,
    p.number,
    p.began_at,
    p.since
from rowferry.pass as p
inner join rowferry.migration as m on p.migration_id = m.id
where m.name = %(migration)s
order by p.began_at desc, p.label
limit %(limit)s;
