-- Resumes the migration of this name, or every migration where null: its batches are claimed again. With
-- `p_queue_name` only this queue of theirs. Returns each with the time since when it was paused (null: it was not), why,
-- and whether a worker paused it. No row: there is no such migration, or none that says anything of the queue.
-- The same as `update rowferry.migration set paused_at = null where ...`, or of rowferry.queue.
-- Writes: migration, or queue. Called by: rowferry_cli/status/pause.py.
create or replace function rowferry.resume(p_name text default null, p_queue_name text default null)
returns table (
    migration text, changed boolean, paused_at timestamptz, pause_reason text, paused_by_worker boolean
)
language sql
set search_path = pg_catalog, pg_temp
as $$
    with before as (
        select
            m.id,
            k.id as queue_id,
            m.name,
            case when p_queue_name is null then m.paused_at else k.paused_at end as paused_at,
            case when p_queue_name is null then m.pause_reason else k.pause_reason end as pause_reason,
            p_queue_name is null and m.paused_by_worker as paused_by_worker
        from rowferry.migration as m
        left join rowferry.queue as k on m.id = k.migration_id and k.name = p_queue_name
        where (p_name is null or m.name = p_name) and (p_queue_name is null or k.id is not null)
    ),

    resumed_migrations as (
        update rowferry.migration as m
        set paused_at = null
        from before as b
        where m.id = b.id and p_queue_name is null
    ),

    resumed_queues as (
        update rowferry.queue as k
        set paused_at = null
        from before as b
        where k.id = b.queue_id
    )

    select
        b.name,
        b.paused_at is not null,
        b.paused_at,
        b.pause_reason,
        b.paused_by_worker
    from before as b
    order by b.id;
$$;
