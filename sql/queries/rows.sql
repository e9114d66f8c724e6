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
-- Locks the rows of a batch of which all that was read still holds, in the order of their ids. No join clause, since a
-- `where` that names tableoid finds it only in a list of tables. `is_equal`: it holds what it is to hold.
with {wanted_rows}

select
    {id_text} as id,
    {is_equal} as is_equal
from {table} as e, rowferry_wanted
where {is_as_read}
order by {columns}
for no key update of e {skip_locked};

-- name: update_rows
-- Gives rows that are locked what they are to hold, if all that was read of them still holds. A statement of its own:
-- one that waits for a lock would see the rest of a row, and of a document, as it was when the statement began.
-- `is_written`: the row holds what it was given, its text aside.
with {wanted_rows}

update {table} as e
set {assignments}
from rowferry_wanted
where {is_as_read}
returning
    {id_text} as id,
    {text} as key,
    {is_written} as is_written;

-- name: observe_rows
-- What the rows that the update left out hold now, and whether they still are entries of the form.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects,
    ({origin} and {where}) is true as is_entry
from {table} as e
where ({columns}) in (select {id_observed} from unnest(%(ids)s::text[]) as w ("rowferry: id")) and {in_range};

-- name: make_expressions
-- A view of what the SQL of a plan computes, by which PostgreSQL tells what it would call. Never read, and taken back.
create temporary view "rowferry: expressions" as
select {expressions} from {table} as e;

-- name: find_refused_functions
-- A function that the view of `make_expressions` would call and that is volatile, runs any SQL, or is not allowed.
with recursive used as (
    select
        'pg_rewrite'::regclass::oid as class_id,
        r.oid as id
    from pg_rewrite as r
    where r.ev_class = 'pg_temp."rowferry: expressions"'::regclass
    union
    select
        n.class_id,
        n.id
    from used as u
    cross join lateral (
        select
            d.refclassid as class_id,
            d.refobjid as id
        from pg_depend as d
        where
            d.classid = u.class_id
            and d.objid = u.id
            and u.class_id in ('pg_rewrite'::regclass, 'pg_operator'::regclass, 'pg_constraint'::regclass)
        union all
        select
            'pg_rewrite'::regclass::oid,
            r.oid
        from pg_rewrite as r
        where u.class_id = 'pg_class'::regclass and r.ev_class = u.id
        union all
        select
            'pg_constraint'::regclass::oid,
            c.oid
        from pg_constraint as c
        where u.class_id = 'pg_type'::regclass and c.contypid = u.id
    ) as n
),

called as (
    select u.id
    from used as u
    where u.class_id = 'pg_proc'::regclass
    union
    -- PostgreSQL notes no dependency on what is its own.
    select (c.found)[1]::oid
    from used as u
    inner join pg_rewrite as r on u.id = r.oid and u.class_id = 'pg_rewrite'::regclass
    cross join regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as c (found)
)

select
    p.oid::regprocedure::text as name,
    p.provolatile = 'v' as is_volatile
from called as c
inner join pg_proc as p on c.id = p.oid
inner join pg_namespace as n on p.pronamespace = n.oid
left join pg_depend as d on p.oid = d.objid and d.classid = 'pg_proc'::regclass and d.deptype = 'e'
left join pg_extension as x on d.refobjid = x.oid
where
    p.provolatile = 'v'
    -- These read the relations that they are told, and so views of others.
    or p.proname ~ '^(table|schema|database)_to_xml'
    or not (
        n.nspname = 'pg_catalog'
        or coalesce(x.extname = any(%(allowed)s::text []), false)
        or n.nspname || '.' || p.proname = any(%(allowed)s::text [])
    )
order by name
limit 1;
