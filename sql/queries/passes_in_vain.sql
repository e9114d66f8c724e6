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

-- name: last_batch
-- The highest id of a batch. An enqueue after this gives higher ones.
select coalesce(max(q.id), 0) as id from rowferry.batch_queue as q;

-- name: found_in_vain
-- Whether as many batches as `times` begin with the same entry, and no worker has found it: one may wait, and the others
-- say so (`unread`). One that was halved ends with an error, and has read none.
select exists (
    select from rowferry.batch_queue as q
    inner join rowferry.migration as m on q.migration_id = m.id
    where
        q.id > %(after)s and m.name = %(migration)s and q.queue_name = %(queue)s
        and (q.status = 'INIT' or (q.status = 'DONE' and q.error is null and q.payload ? 'unread'))
    group by q.payload ->> 'entries', q.payload ->> 'first'
    having count(*) >= %(times)s
) as found;
