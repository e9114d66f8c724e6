select
    case when entries > 0 then 100.0 * (entries - waiting) / entries end as "done",
    waiting as "entries waiting",
    rate as "entries/s",
    extract(epoch from time_left)::double precision as "time left",
    1000 * extract(epoch from now() + time_left)::double precision as "ends at"
from rowferry.progress
where migration = ${migration:sqlstring}
order by waiting desc
limit 1
