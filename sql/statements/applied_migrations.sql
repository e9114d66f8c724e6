select
    number,
    name
from rowferry.schema_migration
order by number
