-- One row a host that had a worker within the last hour: live worker processes, how many objects they may have in
-- flight, their claimed batches, and lost processes: silent for 30 seconds without having deregistered.
create or replace view rowferry.worker_hosts as
select
    w.host,
    count(l.id) as live,
    count(*) - count(l.id) as lost,
    coalesce(sum(l.in_flight_limit), 0)::bigint as in_flight_limit,
    coalesce(sum(l.claimed_batches), 0)::bigint as claimed_batches,
    max(w.last_seen_at) as last_seen_at
from rowferry.worker as w
left join rowferry.live_workers as l on w.id = l.id
where w.stopped_at is null and w.last_seen_at > now() - interval '1 hour'
group by w.host;
