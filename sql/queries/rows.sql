-- The entries of a batch and their rows in the user's table.

-- name: read_entries
-- The entries of a range that (still) have the wanted form.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects
from {table} as e
where
    ({columns}) >= ({first})
    and ({columns}) <= ({last})
    and {wanted}
    and {where}
order by {columns};

-- name: cast_bounds
-- Whether the bounds of a batch still are ids: fails where they are not.
select ({first}) <= ({last}) as are_ids;

-- name: check_constraints_now
-- A deferred constraint would fail only at COMMIT, too late to leave one row out.
set constraints all immediate;

-- name: update_rows
-- Gives the rows of a batch their new texts and states, in the order of their ids, if all that was read of them still
-- holds. The names of the columns are unlike those of a user's table, which `where` and `objects` may name.
with wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(new)s::text[], %(objects)s::text[])
        as w (rowferry_id, rowferry_old, rowferry_new, rowferry_objects)
),

-- No join clause, since a `where` that names tableoid finds it only in a list of tables.
held as materialized (
    select wanted.*
    from {table} as e, wanted
    where
        ({columns}) = ({id_wanted}) and {text} collate "C" = wanted.rowferry_old
        and {same_objects_wanted} and {origin} and {where}
    order by {columns}
    for no key update of e {skip_locked}
)

update {table} as e
set {assignments}
from held
where
    ({columns}) = ({id_held})
    and {text} collate "C" = held.rowferry_old
    and {same_objects_held}
    and {origin}
    and {where}
returning
    {id_text} as id,
    {text} as key,
    {target} as has_moved;

-- name: observe_rows
-- What the rows that the update left out hold now, and whether they still are entries of the form.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects,
    ({origin} and {where}) is true as is_entry
from {table} as e
where ({columns}) in (select {id_observed} from unnest(%(ids)s::text[]) as w (rowferry_id));
