select name
from rowferry.migration
order by name
