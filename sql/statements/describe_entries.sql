-- What the catalogue knows about the table and the two columns of the entries; nulls where it knows nothing.
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
left join pg_type as kt on k.atttypid = kt.oid
