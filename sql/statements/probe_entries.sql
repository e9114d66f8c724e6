-- Reads no row and finds out whether it could: the condition is valid, this role may read all that it names, and ids
-- can be ordered. Tells whether row-level security hides rows from this role.
select
    count(f.id) as read,
    row_security_active(%(quoted_table)s::text) as row_security
from (
    select e.{id} as id
    from {table} as e
    where {is_legacy} and {where}
    order by e.{id}
    limit 0
) as f
