-- The worst first, as in All migrations: where nothing was chosen, the dashboard opens with what needs a person.
select migration
from rowferry.migration_state
order by
    case
        when state in ('stalled', 'no_workers') or (state = 'paused' and paused_by_worker) then 1
        when state = 'need_somebody' then 2
        when state in ('waiting', 'paused') then 3
        when state = 'running' then 4
        else 5
    end,
    created_at desc
