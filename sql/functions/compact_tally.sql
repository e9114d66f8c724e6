-- Replaces the rows of the tally from this id on by their sums per migration, queue and table. Does nothing while
-- another transaction does the same, or above READ COMMITTED, where rows that others deleted are an error.
-- `p_since` avoids dead rows that an old snapshot keeps; only now and then it is 0 and all rows are read.
-- Writes: batch_tally. Called by: rowferry.tally_batches.
create or replace function rowferry.compact_tally(p_since bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- Holds the replaced rows, some hundred kB, whatever the session's work_mem is.
set work_mem = '4MB'
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
        or not pg_try_advisory_xact_lock(hashtextextended('rowferry.batch_tally', 0))
    then
        return;
    end if;

    with taken as (
        delete from rowferry.batch_tally as t
        where t.id >= p_since
        returning t.*
    )

    insert into rowferry.batch_tally (migration_id, queue_name, label, counts, started_at, finished_at)
    select
        t.migration_id,
        t.queue_name,
        t.label,
        rowferry.sum_counts(t.counts),
        min(t.started_at),
        max(t.finished_at)
    from taken as t
    group by t.migration_id, t.queue_name, t.label;
end;
$$;
