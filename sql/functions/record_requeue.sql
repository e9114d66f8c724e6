-- Trigger: records that batches of a queue were put back, once a transaction, however many they are; not those that a
-- new pass renews. A row at a time: with a table of changed rows, it would cost each verdict as well. A setting of the
-- transaction remembers the queue that was recorded last, so that thousands of rows try no INSERT.
-- Writes: event. Called by: any UPDATE of batch_queue.status from DONE or ERROR to INIT.
create or replace function rowferry.record_requeue()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue constant text := now() || ' ' || new.migration_id || ' ' || new.queue_name;
begin
    if current_setting('rowferry.renews', true) = 'on' or current_setting('rowferry.requeued', true) = v_queue then
        return null;
    end if;
    insert into rowferry.event (migration_id, queue_name, kind, text)
    values (new.migration_id, new.queue_name, 'requeued', format('queue %s: batches requeued', new.queue_name))
    on conflict do nothing;
    perform set_config('rowferry.requeued', v_queue, true);
    return null;
end;
$$;

create or replace trigger batch_queue_record_requeue
after update of status on rowferry.batch_queue
for each row
when (new.status = 'INIT' and old.status <> 'INIT')
execute function rowferry.record_requeue();
