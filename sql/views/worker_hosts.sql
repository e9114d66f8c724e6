-- One row a host that had a worker within the last hour: live worker processes, how many objects they may have in
-- flight, their claimed batches, and lost processes: silent for 30 seconds without having deregistered. `unreplaced`
-- are the lost ones after which too few processes have begun, on any host, to stand for all that were lost since then.
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
),

moments as (
    select
        w.host,
        w.last_seen_at as at,
        0 as is_begin
    from workers as w
    where not w.is_live
    union all
    select
        w.host,
        w.started_at as at,
        1 as is_begin
    from workers as w
),

-- At each loss: how many were lost then or later, and how many began after it. Sorted once: a fleet whose processes die
-- and are replaced all the time has thousands of rows, too many to compare each with each.
counted as (
    select
        m.host,
        m.is_begin,
        sum(1 - m.is_begin) over later as lost,
        sum(m.is_begin) over later as begun
    from moments as m
    window later as (order by m.at desc, m.is_begin)
),

unreplaced as (
    select
        c.host,
        count(*) as processes
    from counted as c
    where c.is_begin = 0 and c.lost > c.begun
    group by c.host
)

select
    w.host,
    count(*) filter (where w.is_live) as live,
    count(*) filter (where not w.is_live) as lost,
    coalesce(max(u.processes), 0) as unreplaced,
    coalesce(sum(w.in_flight_limit), 0)::bigint as in_flight_limit,
    coalesce(sum(w.claimed_batches), 0)::bigint as claimed_batches,
    min(w.version) as oldest_version,
    max(w.last_seen_at) as last_seen_at
from workers as w
left join unreplaced as u on w.host = u.host
group by w.host;
