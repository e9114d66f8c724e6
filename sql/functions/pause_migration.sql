-- rowferry.pause_migration(migration_id bigint, reason text)
--   Pauses a migration that no batch of which can be worked on, for a reason in one sentence; returns whether it ran.
--   Writes: migration. Called by: rowferry_worker/pausing.py.
create or replace function rowferry.pause_migration(migration_id bigint, reason text)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with paused as (
        update rowferry.migration as m
        set paused_at = clock_timestamp(), pause_reason = pause_migration.reason
        where m.id = pause_migration.migration_id and m.paused_at is null
        returning m.id
    )

    select exists (select from paused);
$$;
