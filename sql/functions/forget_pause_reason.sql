-- rowferry.forget_pause_reason()
--   Trigger: a migration that is resumed loses its reason to be paused.
--   Writes: the row itself. Called by: any UPDATE of migration.paused_at to null.
create or replace function rowferry.forget_pause_reason()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.pause_reason := null;
    return new;
end;
$$;

create or replace trigger migration_forget_pause_reason
before update of paused_at on rowferry.migration
for each row
when (new.paused_at is null and new.pause_reason is not null)
execute function rowferry.forget_pause_reason();
