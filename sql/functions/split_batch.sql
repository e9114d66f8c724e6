-- rowferry.split_batch(p_batch_id bigint, p_first text, p_last text, p_entry_count integer, p_crashes integer,
--                      p_keep_last text)
--   Puts a part of a claimed batch back in the queue as a batch of its own, due at once, and returns its id.
--   `p_first` and `p_last` (inclusive, as text) are the new batch's range, `p_entry_count` its entries, `p_crashes` the
--   crashes that it inherits. Where `p_keep_last` is not null, the claimed batch's own range now ends there.
--   Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, invalid_parameter_value
--   where the range is not a part of the batch's own.
--   Unfinished uploads of the claimed batch go with the new one: it continues them.
--   Writes: batch_queue, upload. Called by: rowferry_worker/batch/perform.py, in the transaction of the claim.
create or replace function rowferry.split_batch(
    p_batch_id bigint, p_first text, p_last text, p_entry_count integer, p_crashes integer, p_keep_last text
)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_claim(p_batch_id);
    select rowferry.check_range(p_batch_id, p_first, p_last);
    select rowferry.check_range(p_batch_id, p_keep_last, p_keep_last) where p_keep_last is not null;

    update rowferry.batch_queue as q
    set payload = q.payload || jsonb_build_object('last', p_keep_last)
    where q.id = p_batch_id and p_keep_last is not null;

    with added as (
        insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, crashes)
        select
            q.migration_id,
            q.queue_name,
            q.payload || jsonb_build_object('first', p_first, 'last', p_last),
            p_entry_count,
            q.max_attempts,
            p_crashes
        from rowferry.batch_queue as q
        where q.id = p_batch_id
        returning id
    ),

    handed_on as (
        update rowferry.upload as u
        set batch_id = a.id
        from added as a
        where u.batch_id = p_batch_id
    )

    select a.id from added as a;
$$;
