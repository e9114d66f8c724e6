-- rowferry.record_requeue()
--   Trigger: records that batches of a queue were put back, once a transaction, however many they are.
--   Writes: event. Called by: any UPDATE of batch_queue.status from DONE or ERROR to INIT.
create or replace function rowferry.record_requeue()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into rowferry.event (migration_id, queue_name, kind, text)
    values (new.migration_id, new.queue_name, 'requeued', format('queue %s: batches requeued', new.queue_name))
    on conflict do nothing;
    return null;
end;
$$;

create or replace trigger batch_queue_record_requeue
after update of status on rowferry.batch_queue
for each row
when (new.status = 'INIT' and old.status <> 'INIT')
execute function rowferry.record_requeue();
