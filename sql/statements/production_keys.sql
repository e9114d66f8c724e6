-- The keys of one table that have the production form.
select e.{key}::text collate "C" as key
from {table} as e
where {is_production} and {where}
