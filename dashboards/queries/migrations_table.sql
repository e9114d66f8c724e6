select
    case when migration = ${migration:sqlstring} then '▶' end as "▶",
    migration,
    state,
    since,
    floor(1000 * done_share) / 10 as "done",
    waiting as "entries left",
    rate_1m as "entries/s",
    ends_at as "ends at",
    coalesce(held_by, '') as "held by",
    need_somebody as "need an operator",
    left_behind as "left behind",
    passes,
    substring(what_to_do from 'rowferry [a-z]+') as "type this",
    regexp_replace(what_to_do, '; [^;]*\Z', '') as "what holds it"
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
