-- Whether `rowferry init` has been here.
select exists (
    select from pg_class as c
    inner join pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'rowferry' and c.relname = 'progress'
) as has_schema
