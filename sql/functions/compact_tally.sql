-- rowferry.compact_tally(since bigint)
--   Replaces the rows of the tally from this id on by their sum, one row a migration, queue and table. Does nothing
--   while another transaction is at it, or where what others have deleted meanwhile would be an error.
--   `since` spares it the rows that are dead and that some old snapshot keeps: they are read at 0 now and then only.
--   Writes: batch_tally. Called by: rowferry.tally_batches.
create or replace function rowferry.compact_tally(since bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
-- What is replaced is held meanwhile: some hundred kB, which are not left to the session's work_mem.
set work_mem = '4MB'
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
        or not pg_try_advisory_xact_lock(hashtextextended('rowferry.tally', 0))
    then
        return;
    end if;

    with taken as (
        delete from rowferry.batch_tally as t
        where t.id >= $1
        returning t.*
    )

    insert into rowferry.batch_tally (
        migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
        migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
    )
    select
        t.migration_id,
        t.queue_name,
        t.label,
        sum(t.batches),
        sum(t.batches_init),
        sum(t.batches_done),
        sum(t.batches_error),
        sum(t.entries),
        sum(t.migrated),
        sum(t.kept),
        sum(t.changed),
        sum(t.deleted),
        sum(t.missing),
        sum(t.conflict),
        sum(t.failed),
        sum(t.bytes),
        min(t.started_at),
        max(t.finished_at)
    from taken as t
    group by t.migration_id, t.queue_name, t.label;
end;
$$;
