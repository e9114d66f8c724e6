select
    host,
    live,
    lost,
    claimed_batches as "claimed batches",
    in_flight_limit as "in flight, at most",
    oldest_version as "version",
    last_seen_at as "last seen"
from rowferry.worker_hosts
order by host
