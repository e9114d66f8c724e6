-- rowferry.find_oldest(p_queues text[])
--   Returns where the waiting batches begin: for each migration and queue, [run_after, id] of its oldest batch, or the
--   present moment where none is due. `looked_at` is that moment.
--   Walks past batches that finished before the oldest and cannot be vacuumed yet: 0.1 ms a thousand.
--   In plpgsql, whose plan the session keeps: below PostgreSQL 18, a function in SQL is planned at each call.
--   Writes: nothing. Called by: rowferry.claim_batch.
create or replace function rowferry.find_oldest(p_queues text [])
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
    return (
        select
            jsonb_build_object('looked_at', statement_timestamp())
            || coalesce(jsonb_object_agg(
                concat_ws(' ', m.id, u.queue_name),
                case
                    when oldest.run_after <= statement_timestamp() then jsonb_build_array(oldest.run_after, oldest.id)
                    else jsonb_build_array(statement_timestamp(), 0)
                end
            ), '{}')
        from rowferry.migration as m
        cross join unnest(p_queues) as u (queue_name)
        left join rowferry.queue as k on m.id = k.migration_id and u.queue_name = k.name
        left join lateral (
            select
                q.run_after,
                q.id
            from rowferry.batch_queue as q
            where q.status = 'INIT' and q.migration_id = m.id and q.queue_name = u.queue_name
            order by q.run_after, q.id
            limit 1
        ) as oldest on true
        where m.paused_at is null and k.paused_at is null
    );
end;
$$;
