-- rowferry.find_oldest(p_queues text[])
--   Returns where the waiting batches begin, as of one snapshot, `looked_at`:
--   `waiting`: the migrations that have any; `newest`: the highest id of a migration;
--   `starts`: for these queues of theirs, [run_after, id] of the oldest batch, or the present moment where none is due;
--   `batches`, `batches_init`: how many the tally counts in these queues, of all migrations;
--   `walked`: how many entries of the index were read for that, as PostgreSQL counts them (`track_counts`);
--   null where the index is not there.
--   Reads one batch a queue that has any, however many migrations are finished. Walks past batches that finished before
--   the oldest and cannot be vacuumed yet: 0.1 to 0.3 ms a thousand.
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
declare
    v_index constant oid := to_regclass('rowferry.batch_queue_due_idx');
    v_before constant bigint := pg_stat_get_xact_tuples_returned(v_index);
    v_found jsonb;
begin
    v_found := (
        -- A loose index scan: from the oldest batch of one queue to that of the next.
        with recursive walked as (
            (
                select
                    q.migration_id,
                    q.queue_name,
                    q.run_after,
                    q.id
                from rowferry.batch_queue as q
                where q.status = 'INIT'
                order by q.migration_id, q.queue_name, q.run_after, q.id
                limit 1
            )
            union all
            select
                n.migration_id,
                n.queue_name,
                n.run_after,
                n.id
            from walked as w
            cross join lateral (
                select
                    q.migration_id,
                    q.queue_name,
                    q.run_after,
                    q.id
                from rowferry.batch_queue as q
                where q.status = 'INIT' and (q.migration_id, q.queue_name) > (w.migration_id, w.queue_name)
                order by q.migration_id, q.queue_name, q.run_after, q.id
                limit 1
            ) as n
        ),

        waiting as (
            select distinct w.migration_id from walked as w
        ),

        starts as (
            select
                concat_ws(' ', v.migration_id, u.queue_name) as name,
                case
                    when w.run_after <= statement_timestamp() then jsonb_build_array(w.run_after, w.id)
                    else jsonb_build_array(statement_timestamp(), 0)
                end as place
            from waiting as v
            cross join unnest(p_queues) as u (queue_name)
            left join walked as w on v.migration_id = w.migration_id and u.queue_name = w.queue_name
        )

        select jsonb_build_object(
            'looked_at', statement_timestamp(),
            'newest', (select coalesce(max(m.id), 0) from rowferry.migration as m),
            'waiting', (select coalesce(jsonb_agg(v.migration_id), '[]') from waiting as v),
            'starts', (select coalesce(jsonb_object_agg(s.name, s.place), '{}') from starts as s),
            'batches', t.batches,
            'batches_init', t.batches_init
        )
        from (
            select
                coalesce(sum((y.counts).batches), 0) as batches,
                coalesce(sum((y.counts).batches_init), 0) as batches_init
            from rowferry.batch_tally as y
            where y.queue_name = any(p_queues)
        ) as t
    );
    return v_found || jsonb_build_object('walked', pg_stat_get_xact_tuples_returned(v_index) - v_before);
end;
$$;
