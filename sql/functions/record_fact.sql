-- Records what the servers of a migration were seen to do, in the place of what was known of it; `p_key`: of the object
-- that has shown it, or null. The migration need not be there yet.
-- Writes: server_fact. Called by: rowferry/reports/facts.py, rowferry_worker/batch/copies.py.
create or replace function rowferry.record_fact(p_migration text, p_fact text, p_holds boolean, p_key text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.server_fact (migration, fact, holds, key)
    values (p_migration, p_fact, p_holds, p_key)
    on conflict on constraint server_fact_pkey
    do update set holds = excluded.holds, key = excluded.key, noted_at = excluded.noted_at;
$$;
