-- rowferry.register_migration(p_name text, p_plan jsonb)
--   Stores the plan under its name; returns the migration's id and the plan's revision. The row is locked only
--   where the plan is new or has changed. The caller holds the lock of `lock_enqueue` (sql/queries/enqueue.sql).
--   Raises invalid_parameter_value where batches wait that were planned otherwise: see rowferry.guard_plan.
--   Writes: migration. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.register_migration(p_name text, p_plan jsonb)
returns table (migration_id bigint, revision integer)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.migration (name, plan)
    values (p_name, p_plan)
    on conflict on constraint migration_name_key do nothing;

    update rowferry.migration as m
    set plan = p_plan
    where m.name = p_name and m.plan is distinct from p_plan;

    select
        m.id,
        m.revision
    from rowferry.migration as m
    where m.name = p_name;
$$;
