-- rowferry.refresh_reasons()
--   Trigger: where failures are added to batches that are in ERROR already, as by hand or by a restore, their reasons are
--   counted anew. A verdict adds them before.
--   Writes: batch_queue (reasons). Called by: any INSERT into entry_failure; `touched` is the transition table.
create or replace function rowferry.refresh_reasons()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    update rowferry.batch_queue as q
    set reasons = null
    where q.status = 'ERROR' and q.id in (select t.batch_id from touched as t);
    return null;
end;
$$;

create or replace trigger entry_failure_reasons
after insert on rowferry.entry_failure
referencing new table as touched
for each statement
execute function rowferry.refresh_reasons();
