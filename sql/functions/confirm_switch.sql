-- Notes since when the application may be using the production bucket, null: it is back at the legacy bucket; returns
-- what holds now: the first moment at which it may have been switched. An earlier confirmation stays, so that a
-- repeated one changes nothing. When it goes back, the time in which it used the production bucket is kept.
-- Writes: migration. Called by: rowferry_cli/cutover/steps.py.
create or replace function rowferry.confirm_switch(p_migration_id bigint, p_switched_at timestamptz)
returns timestamptz
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set
        switched_at =
            case when p_switched_at is not null then coalesce(m.switched_at, least(m.moment_at, p_switched_at)) end,
        moment_at = case when p_switched_at is not null then least(m.moment_at, p_switched_at) end,
        was_switched_at =
            case
                when p_switched_at is null then least(m.was_switched_at, m.moment_at, m.switched_at)
                else m.was_switched_at
            end,
        switched_back_at =
            case
                when p_switched_at is null and coalesce(m.switched_at, m.moment_at) is not null then now()
                else m.switched_back_at
            end,
        updated_at = now()
    where m.id = p_migration_id
    returning m.switched_at;
$$;
