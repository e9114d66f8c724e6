-- The queues of a database: `rowferry queues`.

-- name: list_queues
-- One row for each queue of each migration, in the order of its chain: its state, how it is claimed, what follows it, the
-- batches that wait and those that live workers have claimed, and the live workers that serve it. `is_paused_whole`: its
-- migration is paused.
select
    s.migration,
    s.queue_name as queue,
    s.state,
    s.priority,
    s.weight,
    s.max_in_hand,
    s.paused_at,
    s.pause_reason,
    m.paused_at is not null as is_paused_whole,
    s.next,
    s.batches_left as waiting_batches,
    s.claimed as claimed_batches,
    (
        select count(*)
        from rowferry.live_workers as w
        where s.queue_name = any(w.queues) and not w.is_silent
    ) as workers
from rowferry.queue_status as s
inner join rowferry.migration as m on s.migration_id = m.id
order by s.migration, s.position;
