-- The entries of one table by the form of their key; a null key is unexpected.
select
    count(*) filter (where {is_legacy}) as legacy,
    count(*) filter (where {is_production}) as production,
    count(*) filter (where ({is_legacy} or {is_production}) is not true) as unexpected
from {table} as e
where {where}
