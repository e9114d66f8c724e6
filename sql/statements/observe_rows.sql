-- What the rows that the update passed over hold now.
select
    e.{id}::text as id,
    e.{key}::text as key
from {table} as e
where e.{id} = any(%(ids)s::text[]::{id_type}[])
