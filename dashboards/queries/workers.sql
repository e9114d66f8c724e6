select
    host,
    live,
    lost,
    slots,
    claimed_batches as "claimed batches",
    parallel as "objects in parallel",
    oldest_version as "version",
    last_seen_at as "last seen"
from rowferry.worker_hosts
where host in (${host:sqlstring})
order by host
