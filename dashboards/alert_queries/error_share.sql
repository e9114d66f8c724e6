select
    s.migration,
    s.queue_name as queue,
    s.failed_share as value
from rowferry.queue_status as s
where s.failed_share > 0.01
