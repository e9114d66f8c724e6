-- Returns, for each migration with waiting batches, these queues and all that lead to them (rowferry.queue.next), with
-- the time since when each is paused (null: it runs).
-- Writes: nothing. Called by: work_left and deferred_work (sql/queries/worker.sql).
create or replace function rowferry.find_lines(p_queues text [])
returns table (migration_id bigint, queue_name text, paused_at timestamptz)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    with recursive waiting as (
        select t.migration_id
        from rowferry.batch_tally as t
        group by t.migration_id
        having sum((t.counts).batches_init) > 0
    ),

    lines as (
        select
            m.migration_id,
            u.queue_name
        from waiting as m
        cross join unnest(p_queues) as u (queue_name)
        union
        select
            k.migration_id,
            k.name as queue_name
        from lines as l
        inner join rowferry.queue as k on l.migration_id = k.migration_id and l.queue_name = any(k.next)
    )

    select
        l.migration_id,
        l.queue_name,
        k.paused_at
    from lines as l
    left join rowferry.queue as k on l.migration_id = k.migration_id and l.queue_name = k.name;
$$;
