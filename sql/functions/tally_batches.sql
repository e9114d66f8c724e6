-- Trigger: adds what a statement has changed of the counts of the queue to the tally: one row for each migration, queue
-- and label, of the new rows less the old ones. Every 100th row compacts the tally.
-- A truncated queue has nothing to tally.
-- It only appends, so that transactions never wait for one another, even if one is an enqueue that lasts an hour.
-- Writes: batch_tally. Called by: any change of batch_queue; `touched` and, of an UPDATE, `replaced` are the transition
-- tables: an INSERT has no old rows, and a DELETE no new ones.
create or replace function rowferry.tally_batches()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sign constant integer := case tg_op when 'DELETE' then -1 else 1 end;
    v_added bigint;
    v_last_id bigint;
begin
    if tg_op = 'TRUNCATE' then
        truncate rowferry.batch_tally;
        return null;
    elsif tg_op = 'UPDATE' then
        insert into rowferry.batch_tally (migration_id, queue_name, label, counts, started_at, finished_at)
        select
            q.migration_id,
            q.queue_name,
            q.payload ->> 'entries',
            rowferry.sum_counts(q.counts),
            min(q.started_at) filter (where q.is_new),
            max(q.finished_at) filter (where q.is_new)
        from (
            select n.*, true as is_new, rowferry.count_batch(row(n.*)::rowferry.batch_queue, 1) as counts
            from touched as n
            union all
            select o.*, false as is_new, rowferry.count_batch(row(o.*)::rowferry.batch_queue, -1) as counts
            from replaced as o
        ) as q
        group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    else
        insert into rowferry.batch_tally (migration_id, queue_name, label, counts, started_at, finished_at)
        select
            q.migration_id,
            q.queue_name,
            q.payload ->> 'entries',
            rowferry.sum_counts(rowferry.count_batch(row(q.*)::rowferry.batch_queue, v_sign)),
            min(q.started_at) filter (where v_sign = 1),
            max(q.finished_at) filter (where v_sign = 1)
        from touched as q
        group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    end if;
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

create or replace trigger batch_queue_tally_inserted
after insert on rowferry.batch_queue
referencing new table as touched
for each statement
execute function rowferry.tally_batches();

create or replace trigger batch_queue_tally_updated
after update on rowferry.batch_queue
referencing new table as touched old table as replaced
for each statement
execute function rowferry.tally_batches();

create or replace trigger batch_queue_tally_deleted
after delete on rowferry.batch_queue
referencing old table as touched
for each statement
execute function rowferry.tally_batches();

create or replace trigger batch_queue_tally_truncated
after truncate on rowferry.batch_queue
for each statement
execute function rowferry.tally_batches();
