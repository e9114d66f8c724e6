-- Pauses (`p_is_paused`) or resumes the migration of this name, or every migration where null: no batch of a paused one
-- is claimed. With `p_queue_name` only this queue of theirs. `p_reason`: why, for all who look at it; a reason that is
-- there stays until it is resumed. Returns each migration, whether this call changed it, since when it is or was
-- paused, why, and whether a worker paused it. No row: there is no such migration; or none has batches of such a queue,
-- says anything of it, or hands on to it.
-- The same as an UPDATE of `paused_at` in rowferry.migration or rowferry.queue, where it adds the row of a queue that
-- is paused and has none.
-- Writes: migration, or queue. Called by: rowferry_cli/status/pause.py.
create or replace function rowferry.set_pause(
    p_is_paused boolean, p_name text default null, p_queue_name text default null, p_reason text default null
)
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
        where
            (p_name is null or m.name = p_name)
            and (
                p_queue_name is null
                or k.id is not null
                or exists (select from rowferry.queue as b where b.migration_id = m.id and p_queue_name = any(b.next))
                or exists (
                    select from rowferry.table_progress as t where t.migration_id = m.id and t.queue_name = p_queue_name
                )
            )
        order by m.id
        for no key update of m
    ),

    migrations as (
        update rowferry.migration as m
        set
            paused_at = case when p_is_paused then coalesce(m.paused_at, now()) end,
            pause_reason = coalesce(m.pause_reason, p_reason)
        from before as b
        where m.id = b.id and p_queue_name is null
    ),

    queues as (
        update rowferry.queue as k
        set
            paused_at = case when p_is_paused then coalesce(k.paused_at, now()) end,
            pause_reason = coalesce(k.pause_reason, p_reason)
        from before as b
        where k.id = b.queue_id
    ),

    new_queues as (
        insert into rowferry.queue (migration_id, name, paused_at, pause_reason)
        select b.id, p_queue_name, now(), p_reason
        from before as b
        where p_queue_name is not null and b.queue_id is null and p_is_paused
        on conflict on constraint queue_name_key do nothing
    )

    select
        b.name,
        (b.paused_at is null) = p_is_paused,
        case when p_is_paused then coalesce(b.paused_at, now()) else b.paused_at end,
        coalesce(b.pause_reason, p_reason),
        b.paused_by_worker
    from before as b
    order by b.id;
$$;
