-- The dead rows that VACUUM has not removed yet, as PostgreSQL counts them: one row for each busy table of rowferry and
-- for each table that a plan names, its partitions included. Reads statistics, no table.
create or replace view rowferry.dead_rows as
with named as (
    select distinct e.entries ->> 'table' as name
    from rowferry.migration as m
    cross join jsonb_path_query(m.plan, '$.entries[*]') as e (entries)
    where e.entries ? 'table'
),

found as (
    select
        format('%s.%s', s.nspname, c.relname) as table_name,
        c.oid
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as s on c.relnamespace = s.oid
    where
        c.relkind in ('r', 'p')
        and (
            s.nspname = 'rowferry'
            and c.relname in ('batch_queue', 'batch_attempt', 'batch_tally', 'entry_failure', 'worker')
            or format('%I.%I', s.nspname, c.relname) in (select n.name from named as n)
            or s.nspname || '.' || c.relname in (select n.name from named as n)
            or s.nspname = 'public' and quote_ident(c.relname) in (select n.name from named as n)
            or s.nspname = 'public' and c.relname in (select n.name from named as n)
        )
)

select
    f.table_name,
    pg_stat_get_dead_tuples(f.oid) + (
        select coalesce(sum(pg_stat_get_dead_tuples(p.relid)), 0)::bigint
        from pg_partition_tree(f.oid) as p
        where p.relid <> f.oid
    ) as dead_rows
from found as f;
