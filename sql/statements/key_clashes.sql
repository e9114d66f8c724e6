-- Different legacy keys of two [[entries]] that become the same production key: how many, and one example.
with clashes as (
    select distinct
        m.production_key,
        m.legacy_key,
        o.legacy_key as other_legacy_key
    from ({legacy_keys}) as m
    inner join ({other_legacy_keys}) as o on m.production_key = o.production_key
    where m.legacy_key <> o.legacy_key
)

select
    c.*,
    count(*) over () as total
from clashes as c
limit 1
