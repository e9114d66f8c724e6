select coalesce(sum(rate), 0)::double precision as rate
from rowferry.throughput
where migration_id = %(id)s
