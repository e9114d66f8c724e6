-- What `rowferry check` and `rowferry plan` ask before a migration.

-- name: describe_entries
-- What the catalogue knows about the table and the columns that the plan names; null where it knows nothing.
with found as (
    select
        c.oid,
        c.relkind,
        s.nspname
    from (select to_regclass(%(table)s) as oid) as named
    left join pg_class as c on named.oid = c.oid
    left join pg_namespace as s on c.relnamespace = s.oid
),

attributes as (
    select
        a.attnum,
        a.attname::text as name,
        a.attnotnull or t.typnotnull as is_not_null,
        a.attgenerated <> '' as is_generated,
        format_type(a.atttypid, a.atttypmod) as type,
        -- To cast to, without a modifier and of a domain its base: an explicit cast to varchar(3), or to a domain over
        -- it, would cut a text in silence, where an assignment refuses it.
        format_type(b.oid, -1) as cast_type,
        format_type(b.oid, case when b.oid = t.oid then a.atttypmod else t.typtypmod end) as base_type,
        case when n.oid is not null then format('%%I.%%I', n.nspname, l.collname) end as collation,
        case
            when b.typname in ('json', 'jsonb') and b.typcategory = 'U' then b.typname
            when b.typcategory = 'S' then 'text'
            when b.typcategory = 'A' and el.typcategory = 'S' then 'array'
            else 'other'
        end as kind,
        case
            when b.typname in ('timestamptz', 'timestamp', 'date') and b.typcategory = 'D' then b.typname
            when b.typname in ('int4', 'int8', 'numeric', 'float8') and b.typcategory = 'N' then 'epoch'
            else 'other'
        end as time_kind,
        has_column_privilege(f.oid, a.attnum, 'select') as may_select,
        has_column_privilege(f.oid, a.attnum, 'update') as may_update
    from found as f
    inner join pg_attribute as a on f.oid = a.attrelid and a.attnum > 0 and not a.attisdropped
    inner join pg_type as t on a.atttypid = t.oid
    inner join pg_type as b on coalesce(nullif(t.typbasetype, 0), t.oid) = b.oid
    left join pg_type as el on b.typelem = el.oid
    left join pg_collation as l on a.attcollation = l.oid
    left join pg_namespace as n on l.collnamespace = n.oid
    where a.attname = any(%(columns)s::text [])
),

id as (
    select
        array_agg(a.type order by u.number) as types,
        array_agg(a.collation order by u.number) as collations,
        array_agg(a.attnum order by u.number) as numbers,
        coalesce(bool_and(a.is_not_null), false) as is_not_null,
        coalesce(bool_or(a.is_generated), false) as is_generated
    from unnest(%(ids)s::text []) with ordinality as u (name, number)
    left join attributes as a on u.name = a.name
),

-- What the policies of row-level security that apply to this role give it. One permissive policy must give a row, and
-- no restrictive one may withhold it. An update needs a condition for the old row and one for the new.
rows_given as (
    select
        u.purpose,
        case
            when row_security_active(f.oid) is not true then 'all'
            when coalesce(bool_or(p.is_permissive and p.condition is not null), false) is false then 'none'
            when
                bool_or(p.is_permissive and p.condition = 'true')
                and bool_and(p.is_permissive or coalesce(p.condition, 'true') = 'true')
                then 'all'
            else 'some'
        end as rows_given
    from found as f
    cross join (values ('read', 'r'), ('update', 'w'), ('rewrite', 'w')) as u (purpose, command)
    left join lateral (
        select
            y.polpermissive as is_permissive,
            pg_get_expr(
                case u.purpose when 'rewrite' then coalesce(y.polwithcheck, y.polqual) else y.polqual end, y.polrelid
            ) as condition
        from pg_policy as y
        where
            y.polrelid = f.oid
            and y.polcmd::text in ('*', u.command)
            and exists (
                select from unnest(y.polroles) as r (oid)
                where r.oid = 0 or pg_has_role(r.oid, 'usage')
            )
    ) as p on true
    group by u.purpose, f.oid
)

select
    f.oid::bigint as table_number,
    f.nspname as schema_name,
    f.relkind::text as kind,
    i.types as id_types,
    i.collations as id_collations,
    k.type as key_type,
    k.base_type as key_base_type,
    coalesce(k.kind, 'other') as key_kind,
    current_setting('server_version_num')::integer >= 160000 as can_try_input,
    array(
        select a.cast_type
        from unnest(%(states)s::text []) with ordinality as u (name, number)
        left join attributes as a on u.name = a.name
        order by u.number
    ) as state_types,
    (select a.type from attributes as a where a.name = %(changed)s) as changed_type,
    coalesce((select a.time_kind from attributes as a where a.name = %(changed)s), 'other') as changed_kind,
    i.is_not_null as id_not_null,
    exists (
        select from pg_index as x
        where
            x.indrelid = f.oid and x.indisunique and x.indisvalid and x.indpred is null
            and (x.indkey::int2 [])[0:x.indnkeyatts - 1] <@ i.numbers
    ) as id_unique,
    -- A partitioned table has no unique index without the columns that it is partitioned by.
    exists (
        select from pg_index as x
        inner join pg_partitioned_table as p on x.indrelid = p.partrelid
        where
            x.indrelid = f.oid and x.indisunique and x.indisvalid
            and (x.indkey::int2 [])[0:x.indnkeyatts - 1] && i.numbers
            and (x.indkey::int2 [])[0:x.indnkeyatts - 1] <@ (i.numbers || p.partattrs::int2 [])
    ) as id_unique_by_partition,
    exists (
        select from pg_index as x
        inner join pg_class as c on x.indexrelid = c.oid
        inner join pg_am as m on c.relam = m.oid
        where
            x.indrelid = f.oid and x.indisvalid and x.indpred is null and m.amname = 'btree'
            and (x.indkey::int2 [])[0:cardinality(i.numbers) - 1] = i.numbers
    ) as id_in_order,
    i.is_generated as id_is_generated,
    array(
        select a.name
        from attributes as a
        where a.is_generated and a.name = any(%(written)s::text [])
        order by a.attnum
    ) as generated,
    exists (
        select from pg_inherits as h
        inner join pg_class as child on h.inhrelid = child.oid
        where h.inhparent = f.oid and not child.relispartition
    ) as has_children,
    exists (select from pg_rewrite as r where r.ev_class = f.oid and r.ev_type = '2') as has_update_rule,
    array(
        select a.relid::oid::bigint
        from pg_partition_ancestors(f.oid) as a
    ) as ancestors,
    not exists (select from attributes as a where not a.may_select) as may_select,
    not exists (
        select from attributes as a
        where not a.may_update and a.name = any(%(written)s::text [])
    ) as may_update,
    (select g.rows_given from rows_given as g where g.purpose = 'read') as rows_to_read,
    (
        select case when 'none' = any(w.given) then 'none' when 'some' = any(w.given) then 'some' else 'all' end
        from (
            select array_agg(g.rows_given) as given
            from rows_given as g
            where g.purpose <> 'read'
        ) as w
    ) as rows_to_update
from found as f
cross join id as i
left join attributes as k on k.name = %(key)s;

-- name: probe_entries
-- Reads no row, and finds out whether it could: the condition is valid, this role may read all columns that it names,
-- and ids can be ordered.
select count(f.id) as read
from (
    select {id_text} as id
    from {table} as e
    where {is_legacy} and {where}
    order by {columns}
    limit 0
) as f;

-- name: probe_expression
-- Reads no row, and fails where an expression of the plan is not valid.
select
from {table} as e
where {value} is null
limit 0;

-- name: compare_states
-- Whether a column of `moved` takes both values of the plan for one; fails where it cannot hold one of them.
select %(legacy)s::text::{type} = %(production)s::text::{type} as are_one;

-- name: list_readable_columns
-- The columns of a table that this role may read, in their order, and from what they are generated.
select
    a.attname::text as name,
    case when a.attgenerated <> '' then pg_get_expr(d.adbin, d.adrelid) end as expression
from pg_attribute as a
left join pg_attrdef as d on a.attrelid = d.adrelid and a.attnum = d.adnum
where
    a.attrelid = %(table_number)s and a.attnum > 0 and not a.attisdropped
    and has_column_privilege(a.attrelid, a.attnum, 'select')
order by a.attnum;

-- name: read_without_columns
-- Reads no row, and fails where SQL of the plan names a column that is left out here.
select {condition_and_objects} as found
from (select {columns_left} from {table} as e) as e
limit 0;

-- name: rows_that_change
-- Legacy rows whose condition or objects are others once columns are rewritten, which is computed here, not done: how
-- many rows no longer meet the condition, and how many have other objects.
select
    count(*) filter (where r.later ->> 0 = 'false') as left_out,
    count(*) filter (where r.later ->> 0 = 'true') as renamed,
    min(r.id) as example
from (
    select
        t.id,
        t.{found_in_legacy} as legacy,
        t.{found_later} as later
    from (
        select
            {id_text} as id,
            {condition_and_objects} as as_it_is,
            {of_rewritten_row} as rewritten
        from {table} as e
        where {has_form}
    ) as t
) as r
where
    r.legacy ->> 0 = 'true'
    and (r.legacy -> 1 -> 0) is distinct from '[]'::jsonb
    and r.legacy <> r.later;

-- name: count_null_ids
-- Legacy rows with an id that is null, or of which a column is.
select count(*) as rows
from {table} as e
where {is_legacy} and {condition} and (row({columns}) is not null) is not true;

-- name: repeated_ids
-- An id of several legacy entries, where no unique index forbids it.
select {id_text} as id
from {table} as e
where {is_legacy} and {where}
group by {columns}
having count(*) > 1
limit 1;

-- name: count_examples
-- The rows of one table that meet a condition beside the plan's, and the first of them.
select
    count(*) as rows,
    min(u.id collate "C") as example
from (
    select {id_text} as id
    from {table} as e
    where {where} and {is_meant}
) as u;

-- name: sample_entries
-- Some entries of one table, of one form, spread over the ids by a hash; one scan.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects
from {table} as e
where {wanted} and {where}
order by hashtext({id_text})
limit %(most)s;

-- name: find_unexpected
-- One text of a table that has neither form.
select {text} as text
from {table} as e
where ({is_legacy} or {is_production}) is not true and {text} is not null and {where}
limit 1;

-- name: object_keys
-- The legacy keys of the objects of one table's entries of a form and their production keys, as rowferry/keys.py computes
-- them, with the texts of the column that name them. Keys are null where the text is badly encoded, or the computed key
-- has another prefix.
select
    o.legacy_text,
    o.production_text,
    o.computed_key,
    %(legacy_object)s::text || o.rest collate "C" as legacy_key,
    %(production_object)s::text || o.rest collate "C" as production_key
from (
    select {object_columns}
    from {table} as e
    where {has_form} and {where}
) as e
cross join lateral ({listed}) as o;

-- name: named_keys
-- Which of some legacy keys the rows of one table name; one scan.
select distinct k.legacy_key as key
from ({object_keys}) as k
where k.legacy_key = any(%(keys)s::text []);

-- name: key_faults
-- How many legacy keys of one table become usable production keys (null fault), and how many do not, and why.
with judged as (
    select
        coalesce(e.legacy_text, e.computed_key) as named,
        case
            when e.legacy_key is null and e.computed_key is null then 'badly encoded'
            when e.legacy_key is null then 'outside'
            when e.legacy_key = '' then 'no object'
            when e.production_key = '' or e.production_text = '' then 'empty'
            when octet_length(convert_to(e.production_key, 'UTF8')) > %(max_bytes)s then 'too long'
            when not {becomes_production} then 'still legacy'
            when char_length(e.production_text) > %(column_length)s then 'too wide'
        end as fault
    from ({object_keys}) as e
)

select
    j.fault,
    count(*) as keys,
    min(j.named) as example
from judged as j
group by j.fault;

-- name: rows_without_objects
-- Rows that would be legacy entries, but for an expression of `objects` that names no object; and how many of them have
-- objects in `optional`.
select
    count(*) as rows,
    count(*) filter (where cardinality({optional_keys}) > 0) as rows_with_optional,
    min({id_text}) as example
from {table} as e
where {is_legacy_row} and {where} and cardinality({required_keys}) = 0;

-- name: meeting_keys
-- The legacy keys of one table whose production keys are keys of another: how many there are, and the first of them.
-- `of_others`: only those of other legacy keys.
with pairs as (
    select distinct
        m.legacy_key,
        m.production_key,
        o.legacy_key as other_legacy_key
    from ({legacy_keys}) as m
    inner join ({other_keys}) as o on m.production_key = o.{other_key}
    where m.legacy_key <> o.legacy_key or not %(of_others)s
)

select
    p.*,
    count(*) over () as total
from pairs as p
order by p.legacy_key
limit %(most)s;

-- name: sees_replicas
-- Whether the owner of rowferry.heartbeat may see how far replicas are behind; without the right it sees only that
-- there are some.
select pg_has_role(
    coalesce(
        (
            select p.proowner
            from pg_proc as p
            inner join pg_namespace as n on p.pronamespace = n.oid
            where n.nspname = 'rowferry' and p.proname = 'heartbeat'
        ),
        (select r.oid from pg_roles as r where r.rolname = current_user)
    ),
    'pg_read_all_stats',
    'usage'
) as sees_replicas;
