-- Pauses a migration whose batches cannot be worked on, for a reason in one sentence; returns whether it ran before.
-- Writes: migration. Called by: rowferry_worker/backoff.py.
create or replace function rowferry.pause_migration(p_migration_id bigint, p_reason text)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with paused as (
        update rowferry.migration as m
        set paused_at = clock_timestamp(), pause_reason = p_reason, paused_by_worker = true
        where m.id = p_migration_id and m.paused_at is null
        returning m.id
    )

    select exists (select from paused);
$$;
