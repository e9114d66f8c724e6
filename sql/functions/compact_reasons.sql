-- rowferry.compact_reasons(p_since bigint)
--   Replaces the rows of the tally of reasons from this id on by their sum, one row a migration, queue, outcome and
--   reason; all of them (0): a reason that no batch has any more goes. Does nothing where rowferry.compact_tally would not.
--   Writes: reason_tally. Called by: rowferry.tally_reasons.
create or replace function rowferry.compact_reasons(p_since bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set work_mem = '4MB'
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
        or not pg_try_advisory_xact_lock(hashtextextended('rowferry.reasons', 0))
    then
        return;
    end if;

    with taken as (
        delete from rowferry.reason_tally as t
        where t.id >= p_since
        returning t.*
    )

    insert into rowferry.reason_tally (
        migration_id, queue_name, outcome, reason, entries, batches, choosing, last_failed_at, example_key, example_error
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
end;
$$;
