select
    $__timeGroupAlias(minute, $__interval, 0),
    queue_name as metric,
    sum(entries) * 1000.0 / $__interval_ms as "entries/s"
from rowferry.finished_minutes
where $__timeFilter(minute) and migration = ${migration:sqlstring}
group by 1, 2
order by 1, 2
