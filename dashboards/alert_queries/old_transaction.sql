select
    t.of,
    t.seconds as value
from rowferry.oldest_transactions as t
where t.seconds > 3600 and exists (select from rowferry.migration_state as s where s.state in ('running', 'stalled'))
