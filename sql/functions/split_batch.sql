-- Puts a part of a claimed batch back in the queue as a batch of its own, due at once, and returns its id. Its
-- unfinished uploads go with it, and when the first attempt began.
-- `p_part` patches the payload into that of the new batch, which has `p_entry_count` entries and `p_crashes` crashes;
-- `p_keep` patches it into what the claimed batch keeps, null: all (rowferry.check_part). `is_begun` in the new
-- payload: entries of it may have been settled, and handed on, before. `last_before` in what is kept is the `last` that
-- it had.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, invalid_parameter_value
-- where a patch says more than which entries are meant.
-- Writes: batch_queue, upload. Called by: rowferry_worker/batch/process.py, in the transaction of the claim.
create or replace function rowferry.split_batch(
    p_batch_id bigint, p_part jsonb, p_entry_count integer, p_crashes integer, p_keep jsonb
)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_claim(p_batch_id);
    select rowferry.check_part(p_part);
    select rowferry.check_part(p_keep) where p_keep is not null;

    with kept as (
        update rowferry.batch_queue as q
        set
            payload = q.payload || p_keep || case
                when p_keep ? 'last' and not q.payload ? 'last_before'
                    then jsonb_build_object('last_before', q.payload -> 'last')
                else '{}'
            end
        where q.id = p_batch_id and p_keep is not null
    ),

    -- Sees the claimed batch as it was, so that each of both patches is told of the whole.
    added as (
        insert into rowferry.batch_queue (
            migration_id, queue_name, payload, entry_count, max_attempts, crashes, tried_at
        )
        select
            q.migration_id,
            q.queue_name,
            (q.payload - 'last_before') || p_part
            || case when q.migrated + q.kept > 0 then '{"is_begun": true}'::jsonb else '{}' end,
            p_entry_count,
            q.max_attempts,
            p_crashes,
            coalesce(
                q.tried_at,
                (
                    select min(a.started_at) from rowferry.batch_attempt as a
                    where a.batch_id = q.id and a.started_at >= q.created_at
                )
            )
        from rowferry.batch_queue as q
        where q.id = p_batch_id
        returning id
    ),

    handed_over as (
        update rowferry.upload as u
        set batch_id = a.id
        from added as a
        where u.batch_id = p_batch_id
    )

    select a.id from added as a;
$$;
