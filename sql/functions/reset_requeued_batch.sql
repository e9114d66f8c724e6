-- Trigger: a finished batch that is set back to INIT is due now (unless the UPDATE sets run_after); its attempts,
-- error and failures are reset, its settled entries (migrated, kept, changed, deleted) stay counted, and so does when
-- the first attempt began. What its last attempt left (`unsettled`) is what the next one reads; after a DONE batch,
-- whose queue reads entries again, all; of any other DONE batch, none.
-- Records the event once a transaction and queue, however many batches there are, and not where a new pass renews them. A
-- setting of the transaction remembers the queue that was recorded last, so that thousands of rows try no INSERT.
-- Writes: entry_failure, event. Called by: any UPDATE of batch_queue.status from DONE or ERROR to INIT.
create or replace function rowferry.reset_requeued_batch()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue constant text := now() || ' ' || new.migration_id || ' ' || new.queue_name;
begin
    if current_setting('rowferry.renews', true) is distinct from 'on'
        and current_setting('rowferry.requeued', true) is distinct from v_queue
    then
        insert into rowferry.event (migration_id, queue_name, kind, text)
        values (new.migration_id, new.queue_name, 'requeued', format('queue %s: batches requeued', new.queue_name))
        on conflict do nothing;
        perform set_config('rowferry.requeued', v_queue, true);
    end if;
    delete from rowferry.entry_failure
    where batch_id = new.id and outcome in ('missing', 'conflict', 'failed');
    new.attempts := 0;
    new.crashes := 0;
    new.tried_at := coalesce(
        old.tried_at,
        (
            select min(a.started_at) from rowferry.batch_attempt as a
            where a.batch_id = old.id and a.started_at >= old.created_at
        )
    );
    new.requeues := old.requeues + 1;
    if new.run_after = old.run_after then
        new.run_after := clock_timestamp();
    end if;
    new.started_at := null;
    new.finished_at := null;
    new.worker_id := null;
    new.error := null;
    new.missing := 0;
    new.conflict := 0;
    new.failed := 0;
    if old.status = 'DONE' and new.payload ? 'unsettled' then
        new.payload := new.payload || jsonb_build_object(
            'unsettled', case when not new.payload ? 'read_again' then '[]'::jsonb end
        );
    end if;
    return new;
end;
$$;

create or replace trigger batch_queue_requeue
before update of status on rowferry.batch_queue
for each row
when (new.status = 'INIT' and old.status <> 'INIT')
execute function rowferry.reset_requeued_batch();
