-- Trigger: where a batch of a pass is deleted before it is DONE, the next pass over those entries takes all rows.
-- Writes: pass. Called by: any DELETE of such a batch.
create or replace function rowferry.forget_passes()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from rowferry.pass as p
    where p.migration_id = old.migration_id and p.label = old.payload ->> 'entries';
    return null;
end;
$$;

create or replace trigger batch_queue_pass
after delete on rowferry.batch_queue
for each row
when (old.status <> 'DONE' and old.payload ? 'pass')
execute function rowferry.forget_passes();
