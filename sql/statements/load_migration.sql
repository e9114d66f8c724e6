select
    id,
    name,
    revision,
    plan
from rowferry.migration
where id = %(id)s
