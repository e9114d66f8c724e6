-- An id of several legacy entries, where no unique index forbids it.
select e.{id}::text as id
from {table} as e
where {is_legacy} and {where}
group by e.{id}
having count(*) > 1
limit 1
