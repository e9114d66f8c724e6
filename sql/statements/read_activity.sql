-- What goes on now: the workers that live, and the rate and the time left of one migration.
select
    (select count(*) from rowferry.live_workers) as workers,
    coalesce(sum(p.rate), 0)::double precision as rate,
    max(p.time_left) as time_left
from rowferry.progress as p
where p.migration = %(migration)s and p.queue_name = 'migrate'
