-- Reserves rows under a bound that all workers share, and returns how long to wait: until these and all that were
-- reserved before have had their time, so that no second ever sees more than the bound.
-- Writes: row_turn. Called by: rowferry_worker/batch/context.py, on the ledger's own connection.
create or replace function rowferry.take_row_turn(p_migration_id bigint, p_rows integer, p_per_second double precision)
returns interval
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.row_turn as t (migration_id, free_at)
    values (p_migration_id, clock_timestamp() + make_interval(secs => p_rows / p_per_second))
    on conflict on constraint row_turn_pkey do update
    set free_at = greatest(t.free_at, clock_timestamp()) + make_interval(secs => p_rows / p_per_second)
    returning free_at - clock_timestamp();
$$;
