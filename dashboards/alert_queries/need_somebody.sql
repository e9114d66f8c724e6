select
    s.migration,
    s.need_somebody as value
from rowferry.migration_state as s
where s.state = 'need_somebody'
