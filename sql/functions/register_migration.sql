-- rowferry.register_migration(name text, plan jsonb)
--   Stores the plan under its name; returns the migration's id and the plan's revision. The row is locked only where the
--   plan is new or has changed. The caller holds the lock of `lock_enqueue` (sql/queries/enqueue.sql).
--   Raises invalid_parameter_value where batches wait that were planned otherwise: see rowferry.guard_plan.
--   Writes: migration. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.register_migration(name text, plan jsonb)
returns table (migration_id bigint, revision integer)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.migration (name, plan)
    values ($1, $2)
    on conflict on constraint migration_name_key do nothing;

    update rowferry.migration as m
    set plan = $2
    where m.name = $1 and m.plan is distinct from $2;

    select
        m.id,
        m.revision
    from rowferry.migration as m
    where m.name = $1;
$$;
