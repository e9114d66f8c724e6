select
    $__timeGroupAlias(finished_at, '1h'),
    sum(entry_count) as "entries"
from rowferry.finished_batches
where $__timeFilter(finished_at) and migration = ${migration:sqlstring}
group by 1
order by 1
