-- Records which objects of the legacy bucket the plan of a migration names, by folder (rowferry/reports/coverage.py),
-- in the place of what was recorded of it before. The migration need not be there yet.
-- Writes: coverage. Called by: rowferry/reports/coverage.py.
create or replace function rowferry.record_coverage(p_migration text, p_folders jsonb, p_left_behind bigint)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.coverage (migration, folders, left_behind)
    values (p_migration, p_folders, p_left_behind)
    on conflict on constraint coverage_pkey do update
    set folders = excluded.folders, left_behind = excluded.left_behind;
$$;
