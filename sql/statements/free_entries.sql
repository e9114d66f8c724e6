-- The wanted entries of a table of which nothing waits, numbered in the order of their ids: one scan, one sort.
select n.*
from (
    select
        e.{id} as id,
        0 as stretch,
        row_number() over (order by e.{id}) as position
    from {table} as e
    where {wanted} and {where}
) as n
{limit}
