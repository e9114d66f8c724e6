select
    min(case when q.entries > 0 then 100.0 * (q.entries - q.waiting) / q.entries end) as "done",
    max(q.waiting) as "entries waiting",
    coalesce(min(q.rate) filter (where q.batches_init > 0), max(q.rate)) as "entries/s",
    extract(epoch from m.time_left)::double precision as "time left",
    1000 * extract(epoch from now() + m.time_left)::double precision as "ends at"
from rowferry.queue_status as q
inner join rowferry.migration_status as m on q.migration_id = m.migration_id
where q.migration = ${migration:sqlstring} and q.queue_name in (${queue:sqlstring})
group by m.time_left
