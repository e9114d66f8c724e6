-- The batches of a simulated migration whose table was made anew: they speak of rows that are gone.
with forgotten as (
    delete from rowferry.batch_queue as q
    using rowferry.migration as m
    where q.migration_id = m.id and m.name = %(migration)s
    returning q.id
)

delete from rowferry.batch_attempt as a
using forgotten
where a.batch_id = forgotten.id
