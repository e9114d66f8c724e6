-- rowferry.record_reasons()
--   Trigger: a batch in ERROR gets its reasons (rowferry.list_reasons), any other loses them. Failures are written before
--   their batch is set to ERROR, or rowferry.refresh_reasons counts them. Where some are deleted or changed by hand, the
--   next UPDATE of their batch counts anew.
--   Writes: the row itself. Called by: any INSERT or UPDATE of batch_queue that leaves a batch in ERROR, or with reasons.
create or replace function rowferry.record_reasons()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.reasons := case when new.status = 'ERROR' then rowferry.list_reasons(new) end;
    return new;
end;
$$;

create or replace trigger batch_queue_reasons
before insert or update on rowferry.batch_queue
for each row
when (new.status = 'ERROR' or new.reasons is not null)
execute function rowferry.record_reasons();
