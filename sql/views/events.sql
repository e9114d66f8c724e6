-- What happened to migrations, for annotations: one row an event. `kind`: paused, resumed, requeued (see
-- rowferry.event), or worker_lost: a worker process was silent for 30 seconds without having deregistered, at its last
-- heartbeat. `migration` is null for worker_lost: a worker serves all. `queue_name`: null
-- for all queues. Query it with a condition on `at`.
create or replace view rowferry.events as
select
    e.at,
    m.name as migration,
    e.kind,
    e.text,
    e.queue_name
from rowferry.event as e
inner join rowferry.migration as m on e.migration_id = m.id
union all
select
    w.last_seen_at as at,
    null as migration,
    'worker_lost' as kind,
    format('%s: worker process %s was lost', w.host, w.pid) as text,
    null as queue_name
from rowferry.worker as w
where w.stopped_at is null and w.last_seen_at <= now() - interval '30 seconds';
