-- rowferry.tally_batches()
--   Trigger: adds the batches that a statement has inserted to the tally, subtracts those that it has deleted
--   (argument: 1 or -1), and adds to it what an UPDATE has changed: new rows less old ones, in one row a line and label.
--   Every 500th row compacts the tally.
--   It only appends, so that transactions never wait for one another, even if one is an enqueue that lasts an hour.
--   Writes: batch_tally. Called by: any change of batch_queue; `touched` and, of an UPDATE, `replaced` are the transition
--   tables.
create or replace function rowferry.tally_batches()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_sign constant integer := tg_argv[0];
    v_added bigint;
    v_last_id bigint;
begin
    if tg_op = 'UPDATE' then
        -- Nearly always it is the verdict of one batch, which needs no sums.
        insert into rowferry.batch_tally (
            migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
            migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
        )
        select
            n.migration_id,
            n.queue_name,
            n.payload ->> 'entries',
            0,
            -1,
            1,
            0,
            n.entry_count - o.entry_count,
            n.migrated - o.migrated,
            n.kept - o.kept,
            n.changed - o.changed,
            n.deleted - o.deleted,
            n.missing,
            n.conflict,
            n.failed,
            n.bytes - o.bytes,
            n.started_at,
            n.finished_at
        from touched as n
        cross join replaced as o
        where
            not exists (select from touched offset 1)
            and o.status = 'INIT'
            and n.status = 'DONE'
            and n.migration_id = o.migration_id
            and n.queue_name = o.queue_name
            and n.payload ->> 'entries' is not distinct from o.payload ->> 'entries';
        if not found then
            insert into rowferry.batch_tally (
                migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
                migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
            )
            select
                q.migration_id,
                q.queue_name,
                q.label,
                sum(q.sign),
                sum(case q.status when 'INIT' then q.sign else 0 end),
                sum(case q.status when 'DONE' then q.sign else 0 end),
                sum(case q.status when 'ERROR' then q.sign else 0 end),
                sum(q.sign * q.entry_count),
                sum(q.sign * q.migrated),
                sum(q.sign * q.kept),
                sum(q.sign * q.changed),
                sum(q.sign * q.deleted),
                sum(case q.status when 'INIT' then 0 else q.sign * q.missing end),
                sum(case q.status when 'INIT' then 0 else q.sign * q.conflict end),
                sum(case q.status when 'INIT' then 0 else q.sign * q.failed end),
                sum(q.sign * q.bytes),
                min(q.started_at) filter (where q.sign = 1),
                max(q.finished_at) filter (where q.sign = 1)
            from (
                select 1 as sign, n.payload ->> 'entries' as label, n.* from touched as n
                union all
                select -1 as sign, o.payload ->> 'entries' as label, o.* from replaced as o
            ) as q
            group by q.migration_id, q.queue_name, q.label;
        end if;
    else
        insert into rowferry.batch_tally (
            migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
            migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
        )
        select
            q.migration_id,
            q.queue_name,
            q.payload ->> 'entries',
            v_sign * count(*),
            v_sign * count(*) filter (where q.status = 'INIT'),
            v_sign * count(*) filter (where q.status = 'DONE'),
            v_sign * count(*) filter (where q.status = 'ERROR'),
            v_sign * sum(q.entry_count),
            v_sign * sum(q.migrated),
            v_sign * sum(q.kept),
            v_sign * sum(q.changed),
            v_sign * sum(q.deleted),
            v_sign * sum(case when q.status = 'INIT' then 0 else q.missing end),
            v_sign * sum(case when q.status = 'INIT' then 0 else q.conflict end),
            v_sign * sum(case when q.status = 'INIT' then 0 else q.failed end),
            v_sign * sum(q.bytes),
            min(q.started_at) filter (where v_sign = 1),
            max(q.finished_at) filter (where v_sign = 1)
        from touched as q
        group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    end if;
    get diagnostics v_added = row_count;
    if v_added > 0 then
        v_last_id := currval('rowferry.batch_tally_id_seq');
        if v_last_id / 500 > (v_last_id - v_added) / 500 then
            perform rowferry.compact_tally(
                'batch_tally', case when v_last_id % 32000 < 500 then 0 else v_last_id - 1000 end
            );
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

create or replace trigger batch_queue_tally_updated
after update on rowferry.batch_queue
referencing new table as touched old table as replaced
for each statement
execute function rowferry.tally_batches('1');

create or replace trigger batch_queue_tally_deleted
after delete on rowferry.batch_queue
referencing old table as touched
for each statement
execute function rowferry.tally_batches('-1');
