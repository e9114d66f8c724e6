-- rowferry.compact_tally(p_tally text, p_since bigint)
--   Replaces the rows of a tally from this id on by their sum: of batch_tally one row a migration, queue and table, of
--   reason_tally one a migration, queue, outcome and reason. Does nothing while another transaction does the same, or above
--   READ COMMITTED, where rows that others deleted are an error.
--   `p_since` avoids dead rows that an old snapshot keeps; only now and then it is 0 and all rows are read. Then a reason
--   that no batch has any more goes.
--   Writes: batch_tally, reason_tally. Called by: rowferry.tally_batches, rowferry.tally_reasons.
create or replace function rowferry.compact_tally(p_tally text, p_since bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
-- Holds the replaced rows, some hundred kB, whatever the session's work_mem is.
set work_mem = '4MB'
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
        or not pg_try_advisory_xact_lock(hashtextextended('rowferry.' || p_tally, 0))
    then
        return;
    end if;

    if p_tally = 'batch_tally' then
        with taken as (
            delete from rowferry.batch_tally as t
            where t.id >= p_since
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
    else
        with taken as (
            delete from rowferry.reason_tally as t
            where t.id >= p_since
            returning t.*
        )

        insert into rowferry.reason_tally (
            migration_id, queue_name, outcome, reason, entries, batches, choosing, last_failed_at, example_key,
            example_error
        )
        select
            t.migration_id,
            t.queue_name,
            t.outcome,
            t.reason,
            sum(t.entries),
            sum(t.batches),
            sum(t.choosing),
            max(t.last_failed_at),
            (array_agg(t.example_key order by t.last_failed_at desc nulls last, t.id desc))[1],
            (array_agg(t.example_error order by t.last_failed_at desc nulls last, t.id desc))[1]
        from taken as t
        group by t.migration_id, t.queue_name, t.outcome, t.reason
        having p_since > 0 or sum(t.batches) <> 0 or sum(t.entries) <> 0;
    end if;
end;
$$;
