select
    host,
    live,
    lost,
    slots,
    claimed_batches
from rowferry.worker_hosts
