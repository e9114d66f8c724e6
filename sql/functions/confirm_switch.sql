-- rowferry.confirm_switch(p_migration_id bigint, p_switched_at timestamptz)
--   Notes since when the application may be using the production bucket, null: it is back at the legacy bucket; returns
--   what holds now. What is confirmed already stays, so that a repeated confirmation changes nothing.
--   Writes: migration. Called by: rowferry_cli/run/cutover.py.
create or replace function rowferry.confirm_switch(p_migration_id bigint, p_switched_at timestamptz)
returns timestamptz
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set
        switched_at = case when p_switched_at is null then null else coalesce(m.switched_at, p_switched_at) end,
        updated_at = now()
    where m.id = p_migration_id
    returning m.switched_at;
$$;
