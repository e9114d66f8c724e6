-- rowferry.may_have_more(p_starts jsonb, p_queues text[])
--   Returns whether these queues have more batches, or more waiting ones, by the tally, than `p_starts` says (see
--   rowferry.find_oldest): then one may be due before the starts. A batch that was given back is not counted anew, and
--   one that came while as many were pruned is not seen.
--   Reads the tally, some hundred rows, however many finished batches VACUUM has not removed.
--   Writes: nothing. Called by: rowferry.claim_batch.
create or replace function rowferry.may_have_more(p_starts jsonb, p_queues text [])
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    return (
        select
            coalesce(sum((t.counts).batches), 0) > coalesce((p_starts ->> 'batches')::bigint, -1)
            or coalesce(sum((t.counts).batches_init), 0) > coalesce((p_starts ->> 'batches_init')::bigint, -1)
        from rowferry.batch_tally as t
        where t.queue_name = any(p_queues)
    );
end;
$$;
