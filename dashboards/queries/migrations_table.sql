select
    case when migration = ${migration:sqlstring} then '▶' else '' end as "shown",
    migration,
    state,
    floor(1000 * done_share) / 10 as "done",
    waiting as "entries left",
    seconds_left as "time left",
    ends_at as "ends at",
    rate_1m as "entries/s",
    need_somebody as "need an operator",
    left_behind as "left behind",
    what_to_do as "what to do"
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
limit 100
