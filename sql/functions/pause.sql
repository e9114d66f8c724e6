-- rowferry.pause(p_name text, p_reason text)
--   Pauses the migration of this name, or every migration where null: no batch of it is claimed from now on.
--   Returns each with the time of its pause, and whether this call paused it. No row: there is no such migration.
--   `p_reason`: why, for all who look at it; a reason that is there already stays.
--   The same as `update rowferry.migration set paused_at = now() where paused_at is null and ...`.
--   Writes: migration. Called by: rowferry/reports/pause.py.
create or replace function rowferry.pause(p_name text default null, p_reason text default null)
returns table (migration text, changed boolean, paused_at timestamptz)
language sql
set search_path = pg_catalog, pg_temp
as $$
    with found as (
        select
            m.id,
            m.paused_at
        from rowferry.migration as m
        where p_name is null or m.name = p_name
        order by m.id
        for no key update
    )

    update rowferry.migration as m
    set paused_at = coalesce(f.paused_at, now()), pause_reason = coalesce(m.pause_reason, p_reason)
    from found as f
    where m.id = f.id
    returning m.name, f.paused_at is null, m.paused_at;
$$;
