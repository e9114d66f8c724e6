-- What the catalogue knows about the table and the two columns of the entries; nulls where it knows nothing.
select
    c.oid is not null as has_table,
    format_type(i.atttypid, i.atttypmod) as id_type,
    format_type(k.atttypid, k.atttypmod) as key_type,
    coalesce(kt.typcategory = 'S', false) as key_is_text,
    coalesce(i.attnotnull, false) as id_not_null,
    exists (
        select from pg_index as x
        where
            x.indrelid = c.oid and x.indisunique and x.indisvalid
            and x.indpred is null and x.indnkeyatts = 1 and x.indkey[0] = i.attnum
    ) as id_unique,
    coalesce(has_column_privilege(c.oid, i.attnum, 'select'), false)
    and coalesce(has_column_privilege(c.oid, k.attnum, 'select'), false) as may_select,
    coalesce(has_column_privilege(c.oid, k.attnum, 'update'), false) as may_update
from (select to_regclass(%(table)s) as oid) as named
left join pg_class as c on named.oid = c.oid
left join pg_attribute as i
    on c.oid = i.attrelid and i.attname = %(id)s and i.attnum > 0 and not i.attisdropped
left join pg_attribute as k
    on c.oid = k.attrelid and k.attname = %(key)s and k.attnum > 0 and not k.attisdropped
left join pg_type as kt on k.atttypid = kt.oid
