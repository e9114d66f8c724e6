-- Records which objects of the legacy bucket the plan of a migration names, by folder, in the place of what was
-- recorded of it before. The migration need not be there yet.
-- Writes: coverage. Called by: rowferry/reports/coverage.py.
create or replace function rowferry.record_coverage(
    p_migration text,
    p_folders text [],
    p_objects bigint [],
    p_unnamed bigint [],
    p_complete boolean [],
    p_exact boolean []
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from rowferry.coverage as c where c.migration = p_migration;
    insert into rowferry.coverage (migration, folder, objects, unnamed, is_complete, is_exact)
    select
        p_migration,
        f.folder,
        f.objects,
        f.unnamed,
        f.is_complete,
        f.is_exact
    from unnest(p_folders, p_objects, p_unnamed, p_complete, p_exact)
        as f (folder, objects, unnamed, is_complete, is_exact);
$$;
