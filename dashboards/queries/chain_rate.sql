select
    $__timeGroupAlias(finished_at, $__interval, 0),
    queue_name as metric,
    sum(entry_count) * 1000.0 / $__interval_ms as "entries/s"
from rowferry.finished_batches
where $__timeFilter(finished_at) and migration = ${migration:sqlstring}
group by 1, 2
order by 1, 2
