select
    host,
    live,
    lost,
    slots,
    claimed_batches as "batches in hand",
    parallel as "objects at once",
    oldest_version as "version",
    last_seen_at as "last seen"
from rowferry.worker_hosts
where host in (${host:sqlstring})
order by host
