-- rowferry.resume(p_name text)
--   Resumes the migration of this name, or every migration where null: its batches are claimed again.
--   Returns each with the time since when it was paused; null: it was not. No row: there is no such migration.
--   The same as `update rowferry.migration set paused_at = null where ...`.
--   Writes: migration. Called by: rowferry/reports/pause.py.
create or replace function rowferry.resume(p_name text default null)
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
    set paused_at = null
    from found as f
    where m.id = f.id
    returning m.name, f.paused_at is not null, f.paused_at;
$$;
