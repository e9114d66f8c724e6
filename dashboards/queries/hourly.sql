select
    $__timeGroupAlias(finished_at, '1h', 0),
    queue_name as metric,
    sum(entry_count) as "entries"
from rowferry.finished_batches
where
    $__timeFilter(finished_at)
    and migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
group by 1, 2
order by 1, 2
