-- Trigger: notes when `max_claimed` was set or lowered, so that batches that were claimed before, with no place or with
-- one above the limit, count until they are finished (rowferry.take_place).
-- Writes: queue, the row that is being written. Called by: any INSERT of a queue, any UPDATE of its max_claimed.
create or replace function rowferry.note_limit()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.limited_at := case when new.max_claimed is not null then clock_timestamp() end;
    return new;
end;
$$;

create or replace trigger queue_limit_added
before insert on rowferry.queue
for each row
execute function rowferry.note_limit();

create or replace trigger queue_limit_lowered
before update of max_claimed on rowferry.queue
for each row
when (new.max_claimed < coalesce(old.max_claimed, 1024))
execute function rowferry.note_limit();
