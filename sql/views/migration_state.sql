-- rowferry.migration_state
--   One row a migration: its state in one word, and how long it takes, for screens, metrics and alerts alike.
--   `state`, the first that is true:
--     done           it had batches, and all batches of all its queues are DONE
--     need_somebody  no batch waits or runs, and some are in ERROR
--     paused         all queues with waiting batches are paused, or the migration is
--     no_workers     no live worker serves a queue with waiting batches that is not paused
--     waiting        no batch is due: they wait for their next attempt; or there is none yet
--     stalled        batches are due, and in none of its queues has anything moved for five minutes (`still_since`)
--     running        anything else
--   `paused_at`: since when it is paused, or all its queues with waiting batches are. `pause_reason`: why; null:
--   by a person who gave no reason. `paused_by_worker`: whether a worker paused it.
--   `done_share`: that of the queue that is behind the others (rowferry.share_done); null without entries.
--   `waiting`: entries that have not left all queues of the chain, less those that live workers have settled;
--   `batches_init`: the batches of these queues that wait or run, of which those that list a bucket have no entries yet.
--   `need_somebody`: entries of all queues that are missing, conflict or failed, or were set to ERROR by hand; at least
--   one for each batch in ERROR. `next_at`: when the first batch is due, if none of a queue that is not paused is yet.
--   `rate_1m`: entries a second in the last minute, of the slowest queue that has waiting batches; 0 where none waits.
--   `seconds_left`: until the last queue has finished, at the rate of ten minutes (rowferry.rate_10m); null unless
--   it is running and all queues with waiting batches move. `ends_at`: that as a time.
--   `still_since`: since when nothing has moved that could (rowferry.queue_status); null where nothing could.
--   `passes`: the enqueues so far. `due_since`: since when its oldest due batch has been due (null: none is due; a claimed
--   batch counts); `oldest_due_batch_id` is that batch. `what_to_do`: what holds it, and what to type, in one sentence;
--   empty while it is running, and when all is done. `left_behind`: objects of the legacy bucket, as they were seen last,
--   that the plan does not name (rowferry.coverage), in folders of which a tenth or more is not named; null: none is known.
create or replace view rowferry.migration_state as
with queues as (
    select
        s.migration_id,
        count(*) as queues,
        bool_and(s.batches = s.batches_done) and bool_or(s.batches > 0) as is_done,
        coalesce(sum(s.batches_init), 0)::bigint as batches_init,
        coalesce(sum(s.batches_error), 0)::bigint as batches_error,
        bool_and(s.paused_at is not null) filter (where s.batches_init > 0) as is_paused,
        max(s.paused_at) filter (where s.batches_init > 0) as paused_at,
        coalesce(
            bool_or(s.is_served) filter (where s.batches_init > 0 and s.paused_at is null), false
        ) as is_served,
        coalesce(bool_or(s.due_since is not null) filter (where s.paused_at is null), false) as is_due,
        min(s.next_at) filter (where s.paused_at is null) as next_at,
        max(s.still_since) as still_since,
        min(s.due_since) as due_since,
        (array_agg(s.oldest_due_batch_id order by s.due_since, s.oldest_due_batch_id))[1] as oldest_due_batch_id,
        min(s.done_share) as done_share,
        coalesce(max(s.pending - s.pending_in_hand), 0) as waiting,
        coalesce(sum(s.unsettled), 0)::bigint as unsettled,
        coalesce(sum(s.waiting) filter (where s.batches_init = 0), 0)::bigint as parked,
        coalesce(min(s.rate_1m) filter (where s.batches_init > 0), max(s.rate_1m)) as rate_1m,
        case when bool_and(s.time_left is not null or s.pending_batches = 0) then max(s.time_left) end as time_left
    from rowferry.queue_status as s
    group by s.migration_id
),

stated as (
    select
        m.id as migration_id,
        m.name as migration,
        m.created_at,
        coalesce(m.paused_at, case when q.is_paused then q.paused_at end) as paused_at,
        m.paused_at is not null as is_paused_whole,
        m.pause_reason,
        m.paused_by_worker,
        q.done_share,
        coalesce(q.waiting, 0) as waiting,
        coalesce(q.batches_init, 0) as batches_init,
        coalesce(greatest(q.unsettled + q.parked, q.batches_error), 0) as need_somebody,
        case when not q.is_due then q.next_at end as next_at,
        m.passes,
        q.still_since,
        q.due_since,
        q.oldest_due_batch_id,
        coalesce(q.rate_1m, 0) as rate_1m,
        q.time_left,
        case
            when q.is_done then 'done'
            when q.batches_init = 0 and q.batches_error > 0 then 'need_somebody'
            when coalesce(q.is_paused, m.paused_at is not null) then 'paused'
            when coalesce(q.batches_init, 0) = 0 then 'waiting'
            when not q.is_served then 'no_workers'
            when not q.is_due then 'waiting'
            when q.still_since < now() - interval '5 minutes' then 'stalled'
            else 'running'
        end as state
    from rowferry.migration as m
    left join queues as q on m.id = q.migration_id
),

left_out as (
    select
        c.migration,
        sum(c.unnamed)::bigint as left_behind
    from rowferry.coverage as c
    where c.unnamed > 0 and c.unnamed >= 0.1 * c.objects
    group by c.migration
)

select
    s.migration_id,
    s.migration,
    s.created_at,
    s.state,
    s.paused_at,
    s.pause_reason,
    s.done_share,
    s.waiting,
    s.batches_init,
    s.need_somebody,
    s.next_at,
    case when s.state in ('done', 'need_somebody') then 0 else s.rate_1m end as rate_1m,
    case when s.state = 'running' then extract(epoch from s.time_left)::double precision end as seconds_left,
    case when s.state = 'running' then now() + s.time_left end as ends_at,
    s.paused_by_worker,
    s.passes,
    s.due_since,
    s.oldest_due_batch_id,
    s.still_since,
    case s.state
        when 'stalled' then 'Batches are due, and nothing has moved for minutes; see why: rowferry watch'
        when 'no_workers' then 'No live worker serves its queues; start one: rowferry worker'
        when 'need_somebody' then 'All that is left has failed; see why: rowferry errors'
        when 'waiting' then case
            when s.batches_init = 0 then 'It has no batch yet; add some: rowferry enqueue'
            when s.next_at = 'infinity' then 'All its batches are deferred for ever; set their run_after'
            else 'No batch is due before its next attempt; see why: rowferry watch'
        end
        when 'paused' then case
            when not s.is_paused_whole then 'All its queues with work are paused; see why: rowferry queues'
            else concat(
                case when s.paused_by_worker then 'A worker' else 'A person' end,
                ' has paused it', ' (' || s.pause_reason || ')', '; then: rowferry resume'
            )
        end
        when 'done' then case
            when l.left_behind > 0 then 'It was a part of the bucket; what the plan leaves out: rowferry status'
            else ''
        end
        else ''
    end as what_to_do,
    l.left_behind
from stated as s
left join left_out as l on s.migration = l.migration;
