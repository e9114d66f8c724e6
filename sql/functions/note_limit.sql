-- rowferry.note_limit()
--   Trigger: notes when `max_in_hand` was set or lowered, so that batches that were claimed before, with no place or with
--   one above the limit, count until they are finished (rowferry.take_place).
--   Writes: queue, the row that is being written. Called by: any INSERT of a queue, any UPDATE of its max_in_hand.
create or replace function rowferry.note_limit()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.limited_at := case when new.max_in_hand is not null then clock_timestamp() end;
    return new;
end;
$$;

create or replace trigger queue_limit_added
before insert on rowferry.queue
for each row
execute function rowferry.note_limit();

create or replace trigger queue_limit_lowered
before update of max_in_hand on rowferry.queue
for each row
when (new.max_in_hand < coalesce(old.max_in_hand, 1024))
execute function rowferry.note_limit();
