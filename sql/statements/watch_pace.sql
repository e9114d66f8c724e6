select coalesce(sum(rate), 0)::double precision as rate
from rowferry.pace
where migration_id = %(id)s
