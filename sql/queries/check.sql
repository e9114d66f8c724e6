-- What `rowferry check` and `rowferry plan` ask before a migration.

-- name: describe_entries
-- What the catalogue knows about the table and the two columns of the entries; null where it knows nothing.
select
    c.oid::bigint as table_number,
    s.nspname as schema_name,
    c.relkind::text as kind,
    format_type(i.atttypid, i.atttypmod) as id_type,
    format_type(k.atttypid, k.atttypmod) as key_type,
    coalesce(kt.typcategory = 'S', false) as key_is_text,
    coalesce(i.attnotnull or it.typnotnull, false) as id_not_null,
    exists (
        select from pg_index as x
        where
            x.indrelid = c.oid and x.indisunique and x.indisvalid
            and x.indpred is null and x.indnkeyatts = 1 and x.indkey[0] = i.attnum
    ) as id_unique,
    -- A partitioned table has no unique index without the columns that it is partitioned by.
    exists (
        select from pg_index as x
        inner join pg_partitioned_table as p on x.indrelid = p.partrelid
        where
            x.indrelid = c.oid and x.indisunique and x.indisvalid and i.attnum = any(x.indkey)
            and not exists (
                select from unnest(x.indkey::int2 []) with ordinality as u (number, position)
                where
                    u.position <= x.indnkeyatts
                    and u.number <> i.attnum
                    and u.number <> all(p.partattrs::int2 [])
            )
    ) as id_unique_by_partition,
    coalesce(i.attgenerated <> '', false) as id_is_generated,
    coalesce(k.attgenerated <> '', false) as key_is_generated,
    exists (
        select from pg_inherits as h
        inner join pg_class as child on h.inhrelid = child.oid
        where h.inhparent = c.oid and not child.relispartition
    ) as has_children,
    exists (select from pg_rewrite as r where r.ev_class = c.oid and r.ev_type = '2') as has_update_rule,
    array(
        select a.relid::oid::bigint
        from pg_partition_ancestors(c.oid) as a
    ) as ancestors,
    array(
        select format('%%s %%s', t.conname, pg_get_constraintdef(t.oid))
        from pg_constraint as t
        where
            (t.contype in ('c', 'f') and t.conrelid = c.oid and k.attnum = any(t.conkey))
            or (t.contype = 'f' and t.confrelid = c.oid and k.attnum = any(t.confkey))
        order by t.conname
    ) as key_constraints,
    coalesce(has_column_privilege(c.oid, i.attnum, 'select'), false)
    and coalesce(has_column_privilege(c.oid, k.attnum, 'select'), false) as may_select,
    coalesce(has_column_privilege(c.oid, k.attnum, 'update'), false) as may_update
from (select to_regclass(%(table)s) as oid) as named
left join pg_class as c on named.oid = c.oid
left join pg_namespace as s on c.relnamespace = s.oid
left join pg_attribute as i
    on c.oid = i.attrelid and i.attname = %(id)s and i.attnum > 0 and not i.attisdropped
left join pg_attribute as k
    on c.oid = k.attrelid and k.attname = %(key)s and k.attnum > 0 and not k.attisdropped
left join pg_type as it on i.atttypid = it.oid
left join pg_type as kt on k.atttypid = kt.oid;

-- name: probe_entries
-- Reads no row, and finds out whether it could: the condition is valid, this role may read all columns that it names,
-- and ids can be ordered. Tells whether row-level security hides rows from this role.
select
    count(f.id) as read,
    row_security_active(%(quoted_table)s::text) as row_security
from (
    select e.{id} as id
    from {table} as e
    where {is_legacy} and {where}
    order by e.{id}
    limit 0
) as f;

-- name: repeated_ids
-- An id of several legacy entries, where no unique index forbids it.
select e.{id}::text as id
from {table} as e
where {is_legacy} and {where}
group by e.{id}
having count(*) > 1
limit 1;

-- name: sample_keys
-- Some legacy keys of one table and their production keys, spread over the ids by a hash; one scan.
select
    e.{key}::text as legacy_key,
    %(production_prefix)s::text || substr(e.{key}::text, char_length(%(legacy_prefix)s::text) + 1) as production_key
from {table} as e
where {is_legacy} and {where}
order by hashtext(e.{id}::text)
limit %(most)s;

-- name: legacy_keys
-- The legacy keys of one table and their production keys, as rowferry/keys.py computes them.
select
    e.{key}::text collate "C" as legacy_key,
    %(production_prefix)s::text || substr(e.{key}::text, char_length(%(legacy_prefix)s::text) + 1) collate "C"
    as production_key
from {table} as e
where {is_legacy} and {where};

-- name: production_keys
-- The keys of one table that have the production form.
select e.{key}::text collate "C" as key
from {table} as e
where {is_production} and {where};

-- name: key_faults
-- How many legacy keys of one table become usable production keys (null fault), and how many do not, and why.
with judged as (
    select
        e.legacy_key,
        case
            when e.production_key = '' then 'empty'
            when octet_length(convert_to(e.production_key, 'UTF8')) > %(max_bytes)s then 'too long'
            when not {becomes_production} then 'still legacy'
            when char_length(e.production_key) > %(column_length)s then 'too wide'
        end as fault
    from ({legacy_keys}) as e
)

select
    j.fault,
    count(*) as entries,
    min(j.legacy_key) as example
from judged as j
group by j.fault;

-- name: key_clashes
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
limit 1;

-- name: key_collisions
-- Legacy keys that become the key of an existing production entry: how many, and the first of them.
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
