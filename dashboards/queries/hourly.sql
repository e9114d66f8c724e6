select
    $__timeGroupAlias(minute, '1h', 0),
    queue_name as metric,
    sum(entries) as "entries"
from rowferry.finished_minutes
where
    $__timeFilter(minute)
    and migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
group by 1, 2
order by 1, 2
