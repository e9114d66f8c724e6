-- Returns where the waiting batches of these queues begin: one row for each line (one migration's queue) that has any,
-- and for each other queue with a row in rowferry.queue of a migration that has any.
-- `since` and `since_id`: `run_after`, as a text in ISO, and `id` of its oldest batch; where none is due (`is_due`), the
-- present moment and 0. `priority` and `weight` are those of rowferry.queue.
-- Reads one batch a line, however many migrations are finished. Walks past batches that finished before the oldest and
-- cannot be vacuumed yet: 0.1 to 0.3 ms a thousand.
-- In plpgsql, whose plan the session keeps: below PostgreSQL 18, a function in SQL is planned at each call.
-- Writes: nothing. Called by: look (sql/queries/worker.sql).
create or replace function rowferry.find_oldest(p_queues text [])
returns table (
    migration_id bigint,
    migration text,
    queue_name text,
    priority integer,
    weight double precision,
    is_due boolean,
    since text,
    since_id bigint
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
    return query
    -- A loose index scan: from the oldest batch of one line to that of the next.
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

    lines as (
        select
            w.migration_id,
            w.queue_name
        from walked as w
        union
        select
            k.migration_id,
            k.name
        from rowferry.queue as k
        where k.migration_id in (select w.migration_id from walked as w)
    )

    select
        m.id,
        m.name,
        l.queue_name,
        coalesce(k.priority, 0),
        coalesce(k.weight, 1),
        coalesce(w.run_after <= statement_timestamp(), false),
        coalesce(least(w.run_after, statement_timestamp()), statement_timestamp())::text,
        case when w.run_after <= statement_timestamp() then w.id else 0 end
    from lines as l
    inner join rowferry.migration as m on l.migration_id = m.id
    left join walked as w on l.migration_id = w.migration_id and l.queue_name = w.queue_name
    left join rowferry.queue as k on l.migration_id = k.migration_id and l.queue_name = k.name
    where l.queue_name = any(p_queues);
end;
$$;
