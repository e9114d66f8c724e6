select
    $__timeGroupAlias(finished_at, $__interval),
    queue_name as metric,
    sum(migrated + kept) * 1000.0 / $__interval_ms as "migrated or kept/s",
    sum(changed + deleted) * 1000.0 / $__interval_ms as "changed or deleted/s",
    sum(missing + conflict + failed) * 1000.0 / $__interval_ms as "failed/s"
from rowferry.finished_batches
where
    $__timeFilter(finished_at)
    and migration = ${migration:sqlstring}
    and queue_name in (${queue:sqlstring})
group by 1, 2
order by 1, 2
