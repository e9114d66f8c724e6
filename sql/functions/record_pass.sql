-- rowferry.record_pass(migration_id bigint, revision integer)
--   Counts a pass whose batches were made by this revision of the plan, and returns true; null, and nothing is counted,
--   where the plan has changed meanwhile: the caller has to roll its batches back.
--   The row stays locked until the caller commits, so that nobody changes the plan before its batches can be seen.
--   Writes: migration. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.record_pass(migration_id bigint, revision integer)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set
        passes = m.passes + 1,
        updated_at = now()
    where m.id = $1 and m.revision = $2
    returning true;
$$;
