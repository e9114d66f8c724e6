select
    host,
    live,
    lost,
    slots,
    batches_in_hand
from rowferry.worker_hosts
