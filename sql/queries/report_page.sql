-- `rowferry report --html`: what the page says beside the report. Each query returns a bounded number of rows, however
-- many batches there are.

-- name: page_migration
-- The migration and its server.
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
    ) as schema_version
from rowferry.migration as m
where m.name = %(migration)s;

-- name: page_attempts
-- One row a queue: its attempts by verdict, from the first start to the last end. Of those without a verdict, `running`
-- are of live workers and `crashed` of others; `deep`: those that read the bytes of both objects. Reads all attempts.
select
    q.queue_name as queue,
    count(*) as attempts,
    count(*) filter (where a.verdict = 'DONE') as done,
    count(*) filter (where a.verdict = 'ERROR') as error,
    count(*) filter (where a.verdict = 'RETRY') as retry,
    count(*) filter (where a.verdict = 'RELEASED') as released,
    count(*) filter (where a.verdict = 'LOST') as lost,
    count(*) filter (where a.verdict is null and a.worker_id = any(v.live)) as running,
    count(*) filter (where a.verdict is null and a.worker_id <> all(v.live)) as crashed,
    count(*) filter (where q.payload ->> 'deep' = 'true') as deep,
    min(a.started_at) as began_at,
    max(coalesce(a.finished_at, a.started_at)) as ended_at
from rowferry.batch_attempt as a
inner join rowferry.batch_queue as q on a.batch_id = q.id
cross join (select array(select w.id from rowferry.live_workers as w) as live) as v
where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
group by q.queue_name;

-- name: page_pace
-- Entries by interval and outcome, of attempts that ended in it. `queues`, `begins` and `steps` belong together.
select
    s.queue_name as queue,
    date_bin(s.step, a.finished_at, s.begins_at) as began_at,
    o.key as outcome,
    sum(o.value::bigint)::bigint as entries
from unnest(%(queues)s::text [], %(begins)s::timestamptz [], %(steps)s::interval [])
    as s (queue_name, begins_at, step)
inner join rowferry.batch_queue as q on s.queue_name = q.queue_name
inner join rowferry.batch_attempt as a on q.id = a.batch_id
cross join jsonb_each_text(a.outcomes) as o (key, value)
where
    a.finished_at is not null
    and q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
group by 1, 2, 3
having sum(o.value::bigint) > 0
order by 1, 2, 3;

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
