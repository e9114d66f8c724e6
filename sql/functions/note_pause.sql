-- Trigger: a migration or a queue that is paused gets the name of the role that did; one that is resumed loses it, and
-- its reason to be paused.
-- Writes: the row itself. Called by: any change of migration.paused_at or queue.paused_at between null and a time.
create or replace function rowferry.note_pause()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.paused_at is null then
        return jsonb_populate_record(new, '{"pause_reason": null, "paused_by": null, "paused_by_worker": false}');
    end if;
    return jsonb_populate_record(new, jsonb_build_object('paused_by', session_user));
end;
$$;

create or replace trigger migration_note_pause
before update of paused_at on rowferry.migration
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.note_pause();

create or replace trigger queue_note_pause
before update of paused_at on rowferry.queue
for each row
when ((new.paused_at is null) <> (old.paused_at is null))
execute function rowferry.note_pause();

create or replace trigger queue_note_first_pause
before insert on rowferry.queue
for each row
when (new.paused_at is not null)
execute function rowferry.note_pause();
