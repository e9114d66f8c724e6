select
    migration,
    state,
    floor(1000 * done_share) / 10 as "done",
    waiting as "entries left",
    seconds_left as "time left",
    ends_at as "ends at",
    case when state in ('done', 'need_somebody') then 0 else rate end as "entries/s",
    need_somebody as "need an operator",
    pause_reason as "paused, because"
from rowferry.migration_state
order by created_at desc
limit 100
