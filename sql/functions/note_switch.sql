-- Notes since when the application may be using the production bucket, as `rowferry cutover` has just said, or with
-- `p_is_confirmed` as a person has confirmed; null: it is back at the legacy bucket. Returns what is confirmed now: the
-- first moment at which it may have been switched. The first moment stays until it goes back, so that a repeated call
-- changes nothing; then the time in which it used the production bucket is kept.
-- Writes: migration. Called by: rowferry_cli/cutover/steps.py, rowferry_cli/cutover/switch.py.
create or replace function rowferry.note_switch(p_migration_id bigint, p_at timestamptz, p_is_confirmed boolean)
returns timestamptz
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update rowferry.migration as m
    set
        moment_at = case when p_at is not null then least(m.moment_at, p_at) end,
        switched_at = case
            when p_at is not null and p_is_confirmed then coalesce(m.switched_at, least(m.moment_at, p_at))
            when p_at is not null then m.switched_at
        end,
        was_switched_at = case
            when p_at is null then least(m.was_switched_at, m.moment_at, m.switched_at)
            else m.was_switched_at
        end,
        switched_back_at = case
            when p_at is null and coalesce(m.switched_at, m.moment_at) is not null then now()
            else m.switched_back_at
        end,
        updated_at = now()
    where m.id = p_migration_id
    returning m.switched_at;
$$;
