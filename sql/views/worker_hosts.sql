-- rowferry.worker_hosts
--   One row a host that had a worker within the last hour: live worker processes, how many objects they may have in
--   flight, their claimed batches, and lost processes: silent for 30 seconds without having deregistered. `unreplaced`
--   are the lost ones after which too few processes have begun, on any host, to stand for all that were lost since then.
create or replace view rowferry.worker_hosts as
with workers as (
    select
        w.host,
        w.started_at,
        w.last_seen_at,
        l.id is not null as is_live,
        l.in_flight_limit,
        l.claimed_batches,
        l.version
    from rowferry.worker as w
    left join rowferry.live_workers as l on w.id = l.id
    where w.stopped_at is null and w.last_seen_at > now() - interval '1 hour'
)

select
    w.host,
    count(*) filter (where w.is_live) as live,
    count(*) filter (where not w.is_live) as lost,
    count(*) filter (
        where not w.is_live
        and (select count(*) from workers as o where not o.is_live and o.last_seen_at >= w.last_seen_at)
        > (select count(*) from workers as o where o.started_at > w.last_seen_at)
    ) as unreplaced,
    coalesce(sum(w.in_flight_limit), 0)::bigint as in_flight_limit,
    coalesce(sum(w.claimed_batches), 0)::bigint as claimed_batches,
    min(w.version) as oldest_version,
    max(w.last_seen_at) as last_seen_at
from workers as w
group by w.host;
