-- What goes on now: the workers that live, and the rate of one migration.
select
    (select count(*) from rowferry.live_workers) as workers,
    coalesce(sum(p.rate), 0)::double precision as rate
from rowferry.throughput as p
inner join rowferry.migration as m on p.migration_id = m.id
where m.name = %(migration)s and p.queue_name = 'migrate'
