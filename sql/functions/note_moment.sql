-- Notes since when the application may be switched, as `rowferry cutover` has just said: from then on, what passes find
-- in the production bucket may be its own. The first such moment stays until it is confirmed that it went back.
-- Writes: migration. Called by: rowferry_cli/cutover/steps.py.
create or replace function rowferry.note_moment(p_migration_id bigint, p_moment_at timestamptz)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set moment_at = p_moment_at
    where m.id = p_migration_id and m.moment_at is null;
$$;
