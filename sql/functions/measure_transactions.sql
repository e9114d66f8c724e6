-- Returns how old the oldest transaction is that keeps VACUUM in this database from removing dead rows: of rowferry's
-- own sessions (`of` is rowferry) and of all others (others), prepared transactions included. `seconds`: 0 where there
-- is none; null where PostgreSQL hides when one began: `grant pg_read_all_stats` to the owner of this function. Not
-- seen: what a replication slot or a replica with hot_standby_feedback holds. Runs with its owner's rights.
-- Writes: nothing. Called by: the view oldest_transactions.
create or replace function rowferry.measure_transactions()
returns table (of text, seconds double precision)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    with held as (
        select
            case when a.application_name like 'rowferry %' then 'rowferry' else 'others' end as of,
            a.xact_start as began_at
        from pg_stat_activity as a
        where
            a.datname = current_database()
            and a.pid <> pg_backend_pid()
            and (a.backend_xid is not null or a.backend_xmin is not null)
            and a.backend_type is distinct from 'autovacuum worker'
            and (a.backend_type is distinct from 'walsender' or a.xact_start is not null)
        union all
        select
            'others',
            p.prepared
        from pg_prepared_xacts as p
        where p.database = current_database()
    )

    select
        n.of,
        case
            when bool_and(h.began_at is not null) filter (where h.of is not null) is not false
                then coalesce(extract(epoch from clock_timestamp() - min(h.began_at)), 0)::double precision
        end
    from (values ('rowferry'), ('others')) as n (of)
    left join held as h on n.of = h.of
    group by n.of;
$$;
