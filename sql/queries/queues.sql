-- The queues of a database: `rowferry queues`.

-- name: list_queues
-- One row for each queue of each migration that has settings or batches: how it is claimed, what follows it, the batches
-- that wait and those that live workers have claimed, and the live workers that serve it. `is_paused_whole`: not the
-- queue is paused, but its migration.
select
    m.name as migration,
    u.name as queue,
    coalesce(k.priority, 0) as priority,
    coalesce(k.weight, 1) as weight,
    k.max_in_hand,
    coalesce(k.paused_at, m.paused_at) as paused_at,
    case when k.paused_at is not null then k.pause_reason else m.pause_reason end as pause_reason,
    k.paused_at is null and m.paused_at is not null as is_paused_whole,
    coalesce(k.next, array[]::text []) as next,
    greatest(coalesce(p.batches_init, 0) - h.claimed, 0) as waiting_batches,
    h.claimed as claimed_batches,
    (select count(*) from rowferry.live_workers as w where u.name = any(w.queues)) as workers
from (
    select
        q.migration_id,
        q.name
    from rowferry.queue as q
    union
    select
        t.migration_id,
        t.queue_name
    from rowferry.table_progress as t
) as u
inner join rowferry.migration as m on u.migration_id = m.id
left join rowferry.queue as k on u.migration_id = k.migration_id and u.name = k.name
left join rowferry.progress as p on u.migration_id = p.migration_id and u.name = p.queue_name
cross join lateral (
    select count(*) as claimed
    from rowferry.claimed_batches as c
    where c.migration = m.name and c.queue_name = u.name
) as h
order by m.name, u.name;
