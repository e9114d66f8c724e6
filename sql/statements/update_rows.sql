-- Station 4: the rows of a batch take their production keys, in the order of their ids, if they still hold the legacy ones.
with wanted as (
    select w.*
    from unnest(%(ids)s::text[]::{id_type}[], %(old)s::text[], %(new)s::text[]) as w (id, old, new)
),

held as materialized (
    select
        e.{id} as id,
        wanted.old,
        wanted.new
    from {table} as e
    inner join wanted on e.{id} = wanted.id and e.{key}::text collate "C" = wanted.old
    order by e.{id}
    for no key update of e {skip_locked}
)

update {table} as e
set {key} = held.new
from held
where e.{id} = held.id and e.{key}::text collate "C" = held.old
returning
    e.{id}::text as id,
    e.{key}::text as key
