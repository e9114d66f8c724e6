-- rowferry.tally_batches()
--   Trigger: adds what a statement has changed of the counts of the queue to the tally: one row for each migration, queue
--   and label, of the new rows less the old ones. Every 100th row compacts the tally.
--   It only appends, so that transactions never wait for one another, even if one is an enqueue that lasts an hour.
--   Writes: batch_tally. Called by: any change of batch_queue. `added` are the new rows of the statement, `removed` the
--   old ones: its transition tables. An INSERT has no old rows, a DELETE no new ones: there, the empty views of these
--   names below are read.
create or replace function rowferry.tally_batches()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, rowferry, pg_temp
as $$
declare
    v_added bigint;
    v_last_id bigint;
begin
    insert into rowferry.batch_tally (migration_id, queue_name, label, counts, started_at, finished_at)
    select
        q.migration_id,
        q.queue_name,
        q.label,
        rowferry.sum_counts(q.counts),
        min(q.started_at),
        max(q.finished_at)
    from (
        select
            n.migration_id,
            n.queue_name,
            n.payload ->> 'entries' as label,
            rowferry.count_batch(row(n.*)::rowferry.batch_queue, 1) as counts,
            n.started_at,
            n.finished_at
        from added as n
        union all
        select
            o.migration_id,
            o.queue_name,
            o.payload ->> 'entries' as label,
            rowferry.count_batch(row(o.*)::rowferry.batch_queue, -1) as counts,
            null as started_at,
            null as finished_at
        from removed as o
    ) as q
    group by q.migration_id, q.queue_name, q.label;
    get diagnostics v_added = row_count;
    if v_added > 0 then
        v_last_id := currval('rowferry.batch_tally_id_seq');
        if v_last_id / 100 > (v_last_id - v_added) / 100 then
            perform rowferry.compact_tally(case when v_last_id % 10000 < 100 then 0 else v_last_id - 200 end);
        end if;
    end if;
    return null;
end;
$$;

create or replace view rowferry.added as
select *
from rowferry.batch_queue
where false;

create or replace view rowferry.removed as
select *
from rowferry.batch_queue
where false;

create or replace trigger batch_queue_tally_inserted
after insert on rowferry.batch_queue
referencing new table as added
for each statement
execute function rowferry.tally_batches();

create or replace trigger batch_queue_tally_updated
after update on rowferry.batch_queue
referencing new table as added old table as removed
for each statement
execute function rowferry.tally_batches();

create or replace trigger batch_queue_tally_deleted
after delete on rowferry.batch_queue
referencing old table as removed
for each statement
execute function rowferry.tally_batches();
