-- Rebuilds the tally by one scan of the queue; returns how many batches it counted. Verdicts wait meanwhile.
-- For batches that the triggers have not seen: data restored with --disable-triggers, or before the triggers.
-- Writes: batch_tally. Called by: rowferry init, where a queue has no tally; an operator.
create or replace function rowferry.recount_batches()
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    lock table rowferry.batch_queue in share row exclusive mode;
    delete from rowferry.batch_tally;
    insert into rowferry.batch_tally (migration_id, queue_name, label, counts, started_at, finished_at)
    select
        q.migration_id,
        q.queue_name,
        q.payload ->> 'entries',
        rowferry.sum_counts(rowferry.count_batch(q, 1)),
        min(q.started_at),
        max(q.finished_at)
    from rowferry.batch_queue as q
    group by q.migration_id, q.queue_name, q.payload ->> 'entries';
    return (select coalesce(sum((t.counts).batches), 0) from rowferry.batch_tally as t);
end;
$$;
