-- From the first claim of a migration's batches to their last verdict, in seconds; null before there is one.
select extract(epoch from max(b.finished_at) - min(b.started_at))::double precision as seconds
from rowferry.batch_queue as b
inner join rowferry.migration as m on m.id = b.migration_id
where m.name = %(migration)s
