-- rowferry.pause_queue(p_queue_name text, p_migration text, p_reason text)
--   Pauses one queue of the migration of this name, or of every migration where null: no batch of it is claimed from now
--   on. Returns each migration with the time of the pause, and whether this call paused it. No row: no migration has
--   batches of such a queue, says anything of it, or hands on to it. `p_reason`: why; a reason that is there stays.
--   The same as `update rowferry.queue set paused_at = now() where ...`, but that it adds the row where there is none.
--   Writes: queue. Called by: rowferry/reports/pause.py.
create or replace function rowferry.pause_queue(
    p_queue_name text, p_migration text default null, p_reason text default null
)
returns table (migration text, changed boolean, paused_at timestamptz)
language sql
set search_path = pg_catalog, pg_temp
as $$
    with found as (
        select
            m.id,
            m.name,
            k.paused_at
        from rowferry.migration as m
        left join rowferry.queue as k on m.id = k.migration_id and k.name = p_queue_name
        where
            (p_migration is null or m.name = p_migration)
            and (
                k.id is not null
                or exists (select from rowferry.queue as b where b.migration_id = m.id and p_queue_name = any(b.next))
                or exists (
                    select from rowferry.table_progress as t where t.migration_id = m.id and t.queue_name = p_queue_name
                )
            )
    ),

    paused as (
        insert into rowferry.queue as q (migration_id, name, paused_at, pause_reason)
        select
            f.id,
            p_queue_name,
            now(),
            p_reason
        from found as f
        order by f.id
        on conflict on constraint queue_name_key do update
        set
            paused_at = coalesce(q.paused_at, excluded.paused_at),
            pause_reason = coalesce(q.pause_reason, excluded.pause_reason)
        returning q.migration_id, q.paused_at
    )

    select
        f.name,
        f.paused_at is null,
        p.paused_at
    from found as f
    inner join paused as p on f.id = p.migration_id
    order by f.id;
$$;
