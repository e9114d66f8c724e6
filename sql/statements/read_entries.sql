-- Station 2: the entries of a range that (still) have the wanted form.
select
    e.{id}::text as id,
    e.{key}::text as key
from {table} as e
where
    e.{id} >= %(first)s::{id_type}
    and e.{id} <= %(last)s::{id_type}
    and {wanted}
    and {where}
order by e.{id}
