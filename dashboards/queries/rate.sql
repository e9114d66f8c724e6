select
    $__timeGroupAlias(finished_at, $__interval),
    sum(migrated + kept) * 1000.0 / $__interval_ms as "rows updated/s",
    sum(changed + deleted) * 1000.0 / $__interval_ms as "changed or deleted/s",
    sum(missing + conflict + failed) * 1000.0 / $__interval_ms as "failed/s"
from rowferry.finished_batches
where $__timeFilter(finished_at) and migration = ${migration:sqlstring}
group by 1
order by 1
