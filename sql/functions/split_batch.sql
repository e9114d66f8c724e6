-- rowferry.split_batch(batch_id bigint, first text, last text, entry_count integer, crashes integer, keep_last text)
--   Puts a part of a claimed batch back in the queue as a batch of its own, due at once, and returns its id.
--   `first` and `last` (inclusive, as text) are the new batch's range, `entry_count` its entries, `crashes` what it
--   inherits. Where `keep_last` is not null, the claimed batch's own range ends there from now on.
--   Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, invalid_parameter_value
--   where the range is not a part of the batch's own.
--   Writes: batch_queue. Called by: rowferry_worker/split.py, in the transaction of the claim.
create or replace function rowferry.split_batch(
    batch_id bigint, first text, last text, entry_count integer, crashes integer, keep_last text
)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_claim($1);
    select rowferry.check_range($1, $2, $3);
    select rowferry.check_range($1, $6, $6) where $6 is not null;

    update rowferry.batch_queue as q
    set payload = q.payload || jsonb_build_object('last', $6)
    where q.id = $1 and $6 is not null;

    insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, crashes)
    select
        q.migration_id,
        q.queue_name,
        q.payload || jsonb_build_object('first', $2, 'last', $3),
        $4,
        q.max_attempts,
        $5
    from rowferry.batch_queue as q
    where q.id = $1
    returning id;
$$;
