select id
from rowferry.migration
where name = %(name)s
