-- rowferry.resume_queue(p_queue_name text, p_migration text)
--   Resumes one queue of the migration of this name, or of every migration where null: its batches are claimed again.
--   Returns each migration that says anything of it, with the time since when it was paused; null: it was not.
--   The same as `update rowferry.queue set paused_at = null where ...`.
--   Writes: queue. Called by: rowferry/reports/pause.py.
create or replace function rowferry.resume_queue(p_queue_name text, p_migration text default null)
returns table (migration text, changed boolean, paused_at timestamptz)
language sql
set search_path = pg_catalog, pg_temp
as $$
    with found as (
        select
            k.id,
            m.name,
            k.paused_at
        from rowferry.queue as k
        inner join rowferry.migration as m on k.migration_id = m.id
        where k.name = p_queue_name and (p_migration is null or m.name = p_migration)
        order by k.id
        for no key update of k
    )

    update rowferry.queue as k
    set paused_at = null
    from found as f
    where k.id = f.id
    returning f.name, f.paused_at is not null, f.paused_at;
$$;
