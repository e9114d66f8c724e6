-- Legacy keys that become the key of a production entry that is there already: how many, and the first of them.
with collisions as (
    select distinct
        m.legacy_key,
        m.production_key
    from ({legacy_keys}) as m
    inner join ({production_keys}) as s on m.production_key = s.key
)

select
    c.legacy_key,
    c.production_key,
    count(*) over () as total
from collisions as c
order by c.legacy_key
limit %(most)s
