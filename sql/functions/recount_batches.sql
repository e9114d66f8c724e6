-- rowferry.recount_batches()
--   Rebuilds the tallies by one scan of the queue; returns how many batches it counted. Verdicts wait meanwhile.
--   For batches that the triggers have not seen: data restored with --disable-triggers, or before the triggers.
--   Writes: batch_tally, reason_tally, batch_queue (reasons). Called by: rowferry init, where a queue has no tally; an operator.
create or replace function rowferry.recount_batches()
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    lock table rowferry.batch_queue in share row exclusive mode;
    -- The trigger counts the failures of each anew.
    update rowferry.batch_queue set reasons = null where status = 'ERROR';
    delete from rowferry.batch_tally;
    delete from rowferry.reason_tally;
    insert into rowferry.reason_tally (
        migration_id, queue_name, outcome, reason, entries, batches, choosing, last_failed_at, example_key, example_error
    )
    select
        q.migration_id,
        q.queue_name,
        r.outcome,
        r.reason,
        sum(r.entries),
        count(*),
        count(*) filter (where q.payload ? 'on_conflict'),
        max(r.last),
        (array_agg(r.key order by r.last desc nulls last, q.id desc))[1],
        (array_agg(r.error order by r.last desc nulls last, q.id desc))[1]
    from rowferry.batch_queue as q
    cross join lateral jsonb_to_recordset(q.reasons) as r (
        outcome text, reason text, entries bigint, last timestamptz, key text, error text
    )
    where q.status = 'ERROR'
    group by q.migration_id, q.queue_name, r.outcome, r.reason;

    insert into rowferry.batch_tally (
        migration_id, queue_name, label, batches, batches_init, batches_done, batches_error, entries,
        migrated, kept, changed, deleted, missing, conflict, failed, bytes, started_at, finished_at
    )
    select
        q.migration_id,
        q.queue_name,
        q.payload ->> 'entries',
        count(*),
        count(*) filter (where q.status = 'INIT'),
        count(*) filter (where q.status = 'DONE'),
        count(*) filter (where q.status = 'ERROR'),
        sum(q.entry_count),
        sum(q.migrated),
        sum(q.kept),
        sum(q.changed),
        sum(q.deleted),
        sum(case when q.status = 'INIT' then 0 else q.missing end),
        sum(case when q.status = 'INIT' then 0 else q.conflict end),
        sum(case when q.status = 'INIT' then 0 else q.failed end),
        sum(q.bytes),
        min(q.started_at),
        max(q.finished_at)
    from rowferry.batch_queue as q
    group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    return (select coalesce(sum(t.batches), 0) from rowferry.batch_tally as t);
end;
$$;
