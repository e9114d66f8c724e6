-- The entries of a batch and their rows in the user's table.

-- name: read_entries
-- The entries of a range that (still) have the wanted form.
select
    e.{id}::text as id,
    e.{key}::text as key
from {table} as e
where
    e.{id} >= %(first)s::{id_type}
    and e.{id} <= %(last)s::{id_type}
    and {wanted}
    and {where}
order by e.{id};

-- name: cast_bounds
-- Whether the bounds of a batch still are ids: fails where they are not.
select
    %(first)s::text::{id_type} as first,
    %(last)s::text::{id_type} as last;

-- name: check_constraints_now
-- A deferred constraint would fail only at COMMIT, too late to leave one row out.
set constraints all immediate;

-- name: update_rows
-- Gives the rows of a batch their production keys, in the order of their ids, if they still hold the legacy keys.
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
    e.{key}::text as key;

-- name: observe_rows
-- What the rows that the update left out hold now.
select
    e.{id}::text as id,
    e.{key}::text as key
from {table} as e
where e.{id} = any(%(ids)s::text[]::{id_type}[]);
