with requeued as (
    update rowferry.batch_queue as q
    set status = 'INIT'
    from rowferry.migration as m
    where q.migration_id = m.id and m.name = %(migration)s and q.status = 'ERROR'
    returning q.id
)

select count(*) as batches from requeued
