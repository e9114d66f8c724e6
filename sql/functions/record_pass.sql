-- Counts a pass whose batches were made by this revision of the plan, and returns true; null, and nothing is counted,
-- where the plan has changed meanwhile: the caller rolls its batches back.
-- The row stays locked until the caller commits: the plan cannot change before its batches are visible.
-- Writes: migration. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.record_pass(p_migration_id bigint, p_revision integer)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set
        passes = m.passes + 1,
        updated_at = now()
    where m.id = p_migration_id and m.revision = p_revision
    returning true;
$$;
