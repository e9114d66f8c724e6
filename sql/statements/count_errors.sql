-- What is in ERROR now: of one migration, or of all where it is null.
select
    count(*) as batches,
    coalesce(sum(q.entry_count), 0)::bigint as entries,
    coalesce(sum(q.missing + q.conflict + q.failed), 0)::bigint as failed
from rowferry.batch_queue as q
inner join rowferry.migration as m on m.id = q.migration_id
where q.status = 'ERROR' and m.name = coalesce(%(migration)s, m.name)
