select
    at as "time",
    text,
    kind as tags
from rowferry.events
where
    $__timeFilter(at)
    and kind in ('requeued', 'worker_lost')
    and (migration = ${migration:sqlstring} or migration is null)
order by at
limit 200
