select
    case when migration = ${migration:sqlstring} then '▶' end as "▶",
    migration,
    state,
    since,
    floor(1000 * done_share) / 10 as "done",
    waiting as "entries left",
    rate_1m as "entries/s",
    ends_at as "ends at",
    needs_operator as "need an operator",
    left_behind as "left behind",
    passes,
    substring(what_to_do from 'rowferry [a-z]+') as "type this",
    regexp_replace(what_to_do, '; [^;]*\Z', '') as "what holds it"
from rowferry.migration_state
order by urgency, created_at desc
limit 100
