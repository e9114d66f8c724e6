-- The entries of a batch and their rows in the user's table.

-- name: read_entries
-- The entries of a range that (still) have the wanted form. `row_values`: other columns, as text; null: none.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects,
    {row_values} as row_values
from {table} as e
where
    ({columns}) >= ({first})
    and ({columns}) <= ({last})
    and {wanted}
    and {where}
order by {columns};

-- name: sample_batches
-- The first entries of some waiting batches of a queue but one, from both ends of those that wait.
select
    payload ->> 'entries' as label,
    payload ->> 'first' as first,
    not payload ? 'objects' as is_row
from (
    (
        select id, payload
        from rowferry.batch_queue
        where migration_id = %(migration_id)s and queue_name = %(queue)s and status = 'INIT'
        order by run_after, id
        limit 1000
    )
    union
    (
        select id, payload
        from rowferry.batch_queue
        where migration_id = %(migration_id)s and queue_name = %(queue)s and status = 'INIT'
        order by run_after desc, id desc
        limit 1000
    )
) as w
where id <> %(id)s and payload ? 'entries' and payload ? 'first'
order by random()
limit %(most)s;

-- name: cast_bounds
-- Whether the bounds of a batch still are ids: fails where they are not.
select ({first}) <= ({last}) as are_ids;

-- name: prefer_indexes
-- For one transaction: PostgreSQL 14 takes ids of several columns for more rows than there are, and would read the whole
-- table for each batch. Where no index has the id, it still does.
set local enable_seqscan = off;

-- name: lock_rows
-- Locks the rows of a batch of which all that was read still holds, in the order of their ids. The names of the list and
-- of its columns are unlike those of a user's tables, which `where` and `objects` may name. No join clause, since a
-- `where` that names tableoid finds it only in a list of tables.
with rowferry_wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(objects)s::text[])
        as w ("rowferry: id", "rowferry: old", "rowferry: objects")
)

select {id_text} as id
from {table} as e, rowferry_wanted
where
    ({columns}) = ({id_wanted})
    and {in_range}
    and {text} collate "C" = rowferry_wanted."rowferry: old"
    and {same_objects}
    and {origin}
    and {where}
order by {columns}
for no key update of e {skip_locked};

-- name: update_rows
-- Gives rows that are locked their new texts and states, if all that was read of them still holds. A statement of its
-- own: one that waits for a lock would see the rest of a row, and of a document, as it was when the statement began.
with rowferry_wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(objects)s::text[], %(new)s::text[])
        as w ("rowferry: id", "rowferry: old", "rowferry: objects", "rowferry: new")
)

update {table} as e
set {assignments}
from rowferry_wanted
where
    ({columns}) = ({id_wanted})
    and {in_range}
    and {text} collate "C" = rowferry_wanted."rowferry: old"
    and {same_objects}
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
where ({columns}) in (select {id_observed} from unnest(%(ids)s::text[]) as w ("rowferry: id")) and {in_range};

-- name: update_values
-- Gives rows that are locked other values, where they hold something else, if all that was read of them still holds.
with rowferry_wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(objects)s::text[], {texts})
        as w ("rowferry: id", "rowferry: old", "rowferry: objects", {names})
)

update {table} as e
set {assignments}
from rowferry_wanted
where
    ({columns}) = ({id_wanted})
    and {in_range}
    and {text} collate "C" = rowferry_wanted."rowferry: old"
    and {same_objects}
    and {origin}
    and {where}
    and row({present}) is distinct from row({given_texts})
returning {id_text} as id;

-- name: find_different
-- The rows that hold something else than the values that they were given.
with rowferry_wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(objects)s::text[], {texts})
        as w ("rowferry: id", "rowferry: old", "rowferry: objects", {names})
)

select {id_text} as id
from {table} as e, rowferry_wanted
where
    ({columns}) = ({id_wanted})
    and {in_range}
    and row({present}) is distinct from row({given_texts});
