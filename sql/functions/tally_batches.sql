-- rowferry.tally_batches()
--   Trigger: adds the batches that a statement has inserted, changed or deleted to the tally, or takes them from it
--   (argument: 1 or -1); an UPDATE takes the old ones and adds the new. Every 500th row compacts the tally.
--   It only appends, so that no two transactions wait for one another, be one of them an enqueue that lasts an hour.
--   Writes: batch_tally. Called by: whatever changes batch_queue, by anybody; `touched` is the transition table.
create or replace function rowferry.tally_batches()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    sign constant integer := tg_argv[0];
    added bigint;
    last_id bigint;
begin
    insert into rowferry.batch_tally (
        migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
        migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
    )
    select
        q.migration_id,
        q.queue_name,
        q.payload ->> 'entries',
        sign * count(*),
        sign * count(*) filter (where q.status = 'INIT'),
        sign * count(*) filter (where q.status = 'DONE'),
        sign * count(*) filter (where q.status = 'ERROR'),
        sign * sum(q.entry_count),
        sign * sum(q.migrated),
        sign * sum(q.kept),
        sign * sum(q.changed),
        sign * sum(q.deleted),
        sign * sum(case when q.status = 'INIT' then 0 else q.missing end),
        sign * sum(case when q.status = 'INIT' then 0 else q.conflict end),
        sign * sum(case when q.status = 'INIT' then 0 else q.failed end),
        sign * sum(q.bytes),
        min(q.started_at) filter (where sign = 1),
        max(q.finished_at) filter (where sign = 1)
    from touched as q
    group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    get diagnostics added = row_count;
    if added > 0 then
        last_id := currval('rowferry.batch_tally_id_seq');
        if last_id / 500 > (last_id - added) / 500 then
            perform rowferry.compact_tally(case when last_id % 32000 < 500 then 0 else last_id - 1000 end);
        end if;
    end if;
    return null;
end;
$$;

create or replace trigger batch_queue_tally_inserted
after insert on rowferry.batch_queue
referencing new table as touched
for each statement
execute function rowferry.tally_batches('1');

create or replace trigger batch_queue_tally_taken
after update on rowferry.batch_queue
referencing old table as touched
for each statement
execute function rowferry.tally_batches('-1');

create or replace trigger batch_queue_tally_updated
after update on rowferry.batch_queue
referencing new table as touched
for each statement
execute function rowferry.tally_batches('1');

create or replace trigger batch_queue_tally_deleted
after delete on rowferry.batch_queue
referencing old table as touched
for each statement
execute function rowferry.tally_batches('-1');
