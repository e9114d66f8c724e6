-- Resumes the migration of this name, or every migration where null: its batches are claimed again. With
-- `p_queue_name` only this queue of theirs.
-- Returns each with the time since when it was paused; null: it was not. No row: there is no such migration, or none
-- that says anything of the queue.
-- The same as `update rowferry.migration set paused_at = null where ...`, or of rowferry.queue.
-- Writes: migration, or queue. Called by: rowferry/reports/pause.py.
create or replace function rowferry.resume(p_name text default null, p_queue_name text default null)
returns table (migration text, changed boolean, paused_at timestamptz)
language sql
set search_path = pg_catalog, pg_temp
as $$
    with migrations as (
        select
            m.id,
            m.paused_at
        from rowferry.migration as m
        where p_queue_name is null and (p_name is null or m.name = p_name)
        order by m.id
        for no key update
    ),

    resumed_migrations as (
        update rowferry.migration as m
        set paused_at = null
        from migrations as f
        where m.id = f.id
        returning m.name, f.paused_at
    ),

    queues as (
        select
            k.id,
            m.name,
            k.paused_at
        from rowferry.queue as k
        inner join rowferry.migration as m on k.migration_id = m.id
        where k.name = p_queue_name and (p_name is null or m.name = p_name)
        order by k.id
        for no key update of k
    ),

    resumed_queues as (
        update rowferry.queue as k
        set paused_at = null
        from queues as f
        where k.id = f.id
        returning f.name, f.paused_at
    )

    select
        m.name,
        m.paused_at is not null,
        m.paused_at
    from resumed_migrations as m
    union all
    select
        q.name,
        q.paused_at is not null,
        q.paused_at
    from resumed_queues as q;
$$;
