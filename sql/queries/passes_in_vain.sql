-- What may keep workers from finding the entries that an enqueue finds.

-- name: outdated_database_collation
-- The default collation of this database, where the server sorts by another version of it. PostgreSQL 15 and newer.
select
    concat('database ', quote_ident(d.datname)) as name,
    d.datcollversion as made_by,
    pg_database_collation_actual_version(d.oid) as now
from pg_database as d
where d.datname = current_database() and d.datcollversion <> pg_database_collation_actual_version(d.oid);

-- name: outdated_collations
-- The same of the collations that columns of tables name.
select
    concat('collation ', quote_ident(n.nspname), '.', quote_ident(c.collname)) as name,
    c.collversion as made_by,
    pg_collation_actual_version(c.oid) as now
from pg_collation as c
inner join pg_namespace as n on c.collnamespace = n.oid
where
    c.collversion <> pg_collation_actual_version(c.oid)
    and exists (select from pg_attribute as a where a.attcollation = c.oid and a.attrelid >= 16384)
order by name;
