-- Which of several ranges of ids hold an entry that (still) has the wanted form: their numbers, from 1.
select r.number::integer as number
from unnest(%(first)s::text[]::{id_type}[], %(last)s::text[]::{id_type}[]) with ordinality as r (first, last, number)
where
    exists (
        select from {table} as e
        where
            e.{id} >= r.first
            and e.{id} <= r.last
            and {wanted}
            and {where}
    )
