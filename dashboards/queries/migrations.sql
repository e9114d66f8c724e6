-- The worst first, as in All migrations: where nothing was chosen, the dashboard opens with what needs an operator.
select migration
from rowferry.migration_state
order by urgency, created_at desc
