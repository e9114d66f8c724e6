-- rowferry.forget_pause_reason()
--   Trigger: a migration or a queue that is resumed loses its reason to be paused.
--   Writes: the row itself. Called by: any UPDATE of migration.paused_at or queue.paused_at to null.
create or replace function rowferry.forget_pause_reason()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return jsonb_populate_record(new, '{"pause_reason": null, "paused_by_worker": false}');
end;
$$;

create or replace trigger migration_forget_pause_reason
before update of paused_at on rowferry.migration
for each row
when (new.paused_at is null and old.paused_at is not null)
execute function rowferry.forget_pause_reason();

create or replace trigger queue_forget_pause_reason
before update of paused_at on rowferry.queue
for each row
when (new.paused_at is null and old.paused_at is not null)
execute function rowferry.forget_pause_reason();
