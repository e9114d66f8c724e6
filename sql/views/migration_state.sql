-- One row a migration: its state in one word, since when, what holds it, and how long it takes, for screens, metrics
-- and alerts alike. `state`, the first that is true:
--   done           it had batches, and all batches of all its queues are DONE
--   needs_operator  no batch waits or runs, and some are in ERROR
--   paused         all queues with waiting batches are paused, or the migration is
--   running        one of its queues is (rowferry.queue_status): a batch is due, a live worker serves it, and it moves
--   stalled        batches are due, and in none of its queues has anything moved for five minutes (`still_since`)
--   no_workers     no live worker serves one of its queues with waiting batches, and no other queue moves
--   waiting        no batch is due: they wait for their next attempt; or there is none yet; or batches are only put
--                  back (rowferry.outages), as while a server is away
-- `cause`: what holds it, in one of these words; empty while it is running, and when all is done:
--   errors       entries need an operator           person, worker, queues  that has paused it, or its queues
--   nothing_moves                                   no_workers, skipped     by all workers that serve it
--   no_batches   nothing was enqueued               server_away             batches are only put back
--   retries      that are not due                   deferred                for ever, by their run_after
-- `what_to_do`: the same in one sentence, with what to type. `since`: since when it is in this state. `urgency`: the
-- order of screens. 1: it could go on and does not, or a worker has paused it; 2: only errors are left; 3: it waits,
-- or a person has paused it; 4: it runs; 5: it is done.
-- `paused_at`: since when it is paused, or all its queues with waiting batches are. `pause_reason`: why; null: no
-- reason was given. `paused_by_worker`: whether a worker paused it.
-- `done_share`: that of the queue that is behind the others (rowferry.share_done); null without entries. `waiting`:
-- entries that have not left all queues of the chain, less those that workers have settled; `batches_init`: the
-- batches of these queues that wait or run. `needs_operator`: the sum of its queues'. `next_at`: when the first batch
-- is due, if none of a queue that is not paused is yet; `due_since`: since when its oldest due batch has been (null:
-- none is due; a claimed batch counts). `still_since`: as in rowferry.queue_status. `passes`: the enqueues so far.
-- `rate_1m`: entries a second in the last minute, of the slowest queue that has waiting batches; 0 where none waits.
-- `seconds_left`: until the last queue has finished, at the rate of ten minutes (rowferry.rates); null unless it is
-- running and all queues with waiting batches move. `ends_at`: that as a time. `held_by`: the queue that holds the
-- end, where it has several (`is_slowest` in rowferry.queue_status).
-- `left_behind`: objects of the legacy bucket that the plan does not name (rowferry.coverage); null: none is known.
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
        bool_or(s.state = 'running') as is_running,
        bool_or(s.state = 'stalled') as is_stalled,
        bool_or(s.state = 'no_workers') as is_unserved,
        array_agg(s.queue_name) filter (where s.state = 'no_workers') as unserved,
        coalesce(bool_or(s.due_since is not null) filter (where s.paused_at is null), false) as is_due,
        min(s.next_at) filter (where s.paused_at is null) as next_at,
        (array_agg(s.next_error order by s.next_at) filter (where s.paused_at is null and s.next_at is not null))[1]
            as next_error,
        max(s.last_tried_at) filter (where s.paused_at is null) as last_tried_at,
        max(s.still_since) as still_since,
        min(s.due_since) as due_since,
        min(s.done_share) as done_share,
        coalesce(max(s.pending_left), 0) as waiting,
        coalesce(sum(s.needs_operator), 0)::bigint as needs_operator,
        coalesce(min(s.rate_1m) filter (where s.batches_init > 0), max(s.rate_1m)) as rate_1m,
        case when bool_and(s.time_left is not null or s.pending_batches = 0) then max(s.time_left) end as time_left,
        min(s.queue_name) filter (where s.is_slowest) as slowest,
        min(s.started_at) as started_at,
        max(s.finished_at) as finished_at
    from rowferry.queue_status as s
    group by s.migration_id
),

stated as (
    select
        m.id as migration_id,
        m.name as migration,
        m.created_at,
        m.paused_at is not null as is_paused_whole,
        m.pause_reason,
        m.paused_by_worker,
        m.passes,
        coalesce(m.paused_at, case when q.is_paused then q.paused_at end) as paused_at,
        q.queues,
        q.unserved,
        q.is_due,
        q.next_error,
        q.last_tried_at,
        q.still_since,
        q.due_since,
        q.done_share,
        q.time_left,
        q.slowest,
        q.started_at,
        q.finished_at,
        o.since as put_back_since,
        o.error as put_back_error,
        coalesce(q.waiting, 0) as waiting,
        coalesce(q.batches_init, 0) as batches_init,
        coalesce(q.needs_operator, 0) as needs_operator,
        case when not q.is_due then q.next_at end as next_at,
        coalesce(q.rate_1m, 0) as rate_1m,
        case
            when q.is_done then 'done'
            when q.batches_init = 0 and q.batches_error > 0 then 'needs_operator'
            when coalesce(q.is_paused, m.paused_at is not null) then 'paused'
            when q.is_running then 'running'
            when q.is_stalled then 'stalled'
            when q.is_unserved then 'no_workers'
            else 'waiting'
        end as state
    from rowferry.migration as m
    left join queues as q on m.id = q.migration_id
    left join rowferry.outages as o on m.id = o.migration_id
),

-- Of a migration that no worker serves: the last one that did and is gone, and why those skip it that are there.
deserted as (
    select
        s.migration_id,
        (
            select max(coalesce(w.stopped_at, w.last_seen_at))
            from rowferry.worker as w
            where
                w.queues && s.unserved
                and (w.stopped_at is not null or w.last_seen_at <= now() - interval '30 seconds')
        ) as left_at,
        (
            select coalesce(min(w.waits_for), min(e.value))
            from rowferry.live_workers as w
            left join jsonb_each_text(w.unusable) as e (key, value)
                on e.key = s.migration_id::text or e.key = any(
                    select s.migration_id || ' ' || u.name
                    from unnest(s.unserved) as u (name)
                )
            where w.queues && s.unserved
        ) as skip_error
    from stated as s
    where s.state = 'no_workers'
),

caused as (
    select
        s.*,
        d.left_at,
        d.skip_error,
        case s.state
            when 'needs_operator' then 'errors'
            when 'stalled' then 'nothing_moves'
            when 'no_workers' then case when d.skip_error is null then 'no_workers' else 'skipped' end
            when 'paused' then case
                when not s.is_paused_whole then 'queues'
                when s.paused_by_worker then 'worker'
                else 'person'
            end
            when 'waiting' then case
                when s.batches_init = 0 then 'no_batches'
                when s.put_back_since is not null then 'server_away'
                when s.next_at is null and not s.is_due then 'deferred'
                else 'retries'
            end
            else ''
        end as cause
    from stated as s
    left join deserted as d on s.migration_id = d.migration_id
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
    s.needs_operator,
    s.next_at,
    case when s.state in ('done', 'needs_operator') then 0 else s.rate_1m end as rate_1m,
    case when s.state = 'running' then extract(epoch from s.time_left)::double precision end as seconds_left,
    case when s.state = 'running' then now() + s.time_left end as ends_at,
    s.paused_by_worker,
    s.passes,
    s.due_since,
    s.still_since,
    case s.cause
        when 'errors' then 'All that is left has failed; see why: rowferry errors'
        when 'nothing_moves'
            then 'Batches are due, and nothing has moved for minutes; see what has them: rowferry watch'
        when 'no_workers' then 'No live worker serves its queues; start one: rowferry worker'
        when 'skipped' then format(
            'Workers skip it (%s); fix that, and they continue; see which: rowferry status', s.skip_error
        )
        when 'no_batches' then 'It has no batch yet; add some: rowferry enqueue'
        when 'server_away' then format(
            'Batches are only put back (%s); workers go on by themselves; look at the server: rowferry check',
            s.put_back_error
        )
        when 'deferred' then 'All its batches are deferred for ever; set their run_after'
        when 'retries' then concat(
            'No batch is due before its next attempt', ' (' || s.next_error || ')',
            '; see when: rowferry watch'
        )
        when 'queues' then 'All its queues with work are paused; see why: rowferry queues'
        when 'worker' then concat(
            'A worker has paused it', ' (' || s.pause_reason || ')', '; then: rowferry resume'
        )
        when 'person' then concat(
            'A person has paused it', ' (' || s.pause_reason || ')', '; then: rowferry resume'
        )
        else case
            when s.state = 'done' and l.left_behind > 0
                then 'It was a part of the bucket; what the plan leaves out: rowferry status'
            else ''
        end
    end as what_to_do,
    nullif(l.left_behind, 0) as left_behind,
    case s.state
        when 'done' then coalesce(s.finished_at, s.created_at)
        when 'needs_operator' then coalesce(s.finished_at, s.created_at)
        when 'paused' then s.paused_at
        when 'stalled' then s.still_since
        when 'no_workers' then coalesce(greatest(s.left_at, s.due_since), s.last_tried_at, s.created_at)
        when 'waiting' then case s.cause
            when 'server_away' then s.put_back_since
            else coalesce(greatest(s.finished_at, s.last_tried_at), s.created_at)
        end
        else greatest(s.started_at, (
            select max(e.at)
            from rowferry.event as e
            where e.migration_id = s.migration_id and e.kind = 'resumed'
        ), case when s.started_at is null then s.due_since end)
    end as since,
    s.cause,
    case when s.queues > 1 and s.state = 'running' then s.slowest end as held_by,
    s.is_paused_whole,
    case
        when s.state in ('stalled', 'no_workers') or (s.state = 'paused' and s.paused_by_worker) then 1
        when s.state = 'needs_operator' then 2
        when s.state in ('waiting', 'paused') then 3
        when s.state = 'running' then 4
        else 5
    end as urgency
from caused as s
left join rowferry.coverage as l on s.migration = l.migration;
