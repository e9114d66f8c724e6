select
    s.migration,
    s.needs_operator as value
from rowferry.migration_state as s
where s.state = 'needs_operator'
