-- One row a migration and queue, for each queue that has batches or a row in rowferry.queue, or that one of these
-- names in `next`. `position` counts them from 1, in the order of the chain: a queue comes after all that lead to it,
-- and a chain after those that began before it. The counts, `started_at` and `finished_at` are those of
-- rowferry.progress, 0 where it has none; `claimed`: batches that live workers have claimed, of `max_claimed` at most
-- (null: no limit).
-- `due_since`: since when its oldest due batch has been due (null: none is); `next_at`: when the first of its batches
-- is due, if none is yet (null: never); `next_error`: why that has to be tried again; `last_tried_at`: when it was, or
-- made.
-- `waiting` are its own entries; `pending` are these and the waiting entries of all queues that lead to it, as
-- `pending_batches` are the batches in INIT. Less what workers have settled inside their batches (`in_hand`, of its
-- own) they are `entries_left` and `pending_left`. `batches_left`: its batches in INIT that no worker has claimed.
-- `rate_1m` is that of the last minute, 0 once nothing is pending, no worker serves it, or it is paused and no batch
-- is claimed; `rate_10m` that of the last ten. `time_left` is how long it takes until nothing is pending, at this
-- rate: the longest of its own and those of the queues before it; null while that is unknown, nothing is pending, one
-- of them with waiting batches is paused or served by no live worker, or no batch of the migration is due.
-- `needs_operator`: `in_error`, and at least one for each batch in ERROR. `done_share`: its settled entries, 0 to 1
-- (rowferry.share_done). `failed_share`: those of its finished entries that are unsettled, 0 to 1; null while none is
-- finished. `is_done`: it had batches, none waits here or before, and none of its own is in ERROR.
-- `is_slowest`: the first queue of the migration that takes nearly as long as all of them: it holds the end.
-- `still_since`: the last time at which anything moved that could: a batch ended, entries were settled inside one, a
-- part of an upload was written; or a batch became due, a worker came to serve it, or it was resumed. A batch in its
-- first attempt that has reported nothing moves for 30 minutes. Null unless a batch is due, served and not paused.
-- `state`: as that of a migration, of this queue alone, or `idle`: it waits for the queues before it. It is `waiting`
-- as well where batches are only put back (rowferry.outages), and where its batches are due and workers claim only
-- from other queues. `pause_reason`: of the queue, or of its migration.
create or replace view rowferry.queue_status as
with recursive links as (
    select
        k.migration_id,
        k.name as queue_name,
        n.name as later
    from rowferry.queue as k
    cross join unnest(k.next) as n (name)
),

-- Each queue, and each that comes after it once, however many ways there are; rowferry.guard_next allows no circle.
leads as (
    select
        l.migration_id,
        l.queue_name,
        l.later
    from links as l
    union
    select
        b.migration_id,
        b.queue_name,
        l.later
    from leads as b
    inner join links as l on b.migration_id = l.migration_id and b.later = l.queue_name
),

named as (
    select
        p.migration_id,
        p.queue_name
    from rowferry.progress as p
    union
    select
        k.migration_id,
        k.name as queue_name
    from rowferry.queue as k
    union
    select
        l.migration_id,
        l.later as queue_name
    from links as l
),

claimed as (
    select
        c.migration,
        c.queue_name,
        count(*) as batches,
        max(least(now(), c.started_at + interval '30 minutes')) filter (where c.attempt = 1 and c.in_hand = 0)
            as moved_at
    from rowferry.claimed_batches as c
    group by c.migration, c.queue_name
),

-- When something last moved that is not the end of a batch.
moved as (
    select
        e.migration_id,
        e.queue_name,
        max(e.at) as at
    from (
        select
            h.migration_id,
            h.queue_name,
            h.reported_at as at
        from rowferry.in_hand as h
        union all
        select
            q.migration_id,
            q.queue_name,
            u.touched_at as at
        from rowferry.upload as u
        inner join rowferry.batch_queue as q on u.batch_id = q.id
    ) as e
    group by e.migration_id, e.queue_name
),

served as (
    select
        q.queue_name,
        w.unusable,
        min(w.started_at) as started_at
    from rowferry.live_workers as w
    cross join unnest(w.queues) as q (queue_name)
    where not w.is_silent and w.waits_for is null
    group by q.queue_name, w.unusable
),

known as (
    select
        u.migration_id,
        m.name as migration,
        u.queue_name,
        jsonb_populate_record(
            '(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)'::rowferry.counts, jsonb_strip_nulls(to_jsonb(p))
        ) as counts,
        coalesce(c.batches, 0) as claimed,
        k.max_claimed,
        coalesce(k.priority, 0) as priority,
        coalesce(k.weight, 1) as weight,
        coalesce(m.paused_at, k.paused_at) as paused_at,
        m.paused_at is not null as is_paused_whole,
        case when m.paused_at is not null then m.pause_reason else k.pause_reason end as pause_reason,
        v.served_since is not null as is_served,
        greatest(p.finished_at, d.at, v.served_since, c.moved_at, r.resumed_at) as moved_at,
        coalesce(k.next, '{}') as next,
        coalesce(p.in_hand, 0) as in_hand,
        coalesce(p.rate_1m, 0) as rate_1m,
        coalesce(p.rate_10m, 0) as rate_10m,
        p.done_share,
        greatest(p.in_error, p.batches_error, 0) as needs_operator,
        p.started_at,
        p.finished_at
    from named as u
    inner join rowferry.migration as m on u.migration_id = m.id
    left join rowferry.progress as p on u.migration_id = p.migration_id and u.queue_name = p.queue_name
    left join rowferry.queue as k on u.migration_id = k.migration_id and u.queue_name = k.name
    left join claimed as c on m.name = c.migration and u.queue_name = c.queue_name
    left join moved as d on u.migration_id = d.migration_id and u.queue_name = d.queue_name
    cross join lateral (
        select min(s.started_at) as served_since
        from served as s
        where
            s.queue_name = u.queue_name
            and not s.unusable ?| array[u.migration_id::text, u.migration_id || ' ' || u.queue_name]
    ) as v
    cross join lateral (
        select max(e.at) as resumed_at
        from rowferry.event as e
        where
            e.at > now() - interval '10 minutes'
            and e.kind = 'resumed'
            and e.migration_id = u.migration_id
            and coalesce(e.queue_name, u.queue_name) = u.queue_name
    ) as r
),

-- What comes from the queues that lead to each. Joined and grouped at once: a lateral reads all queues for each.
coming as (
    select
        l.migration_id,
        l.later as queue_name,
        count(*) as queues,
        min(k.started_at) as began_at,
        sum((k.counts).waiting)::bigint as waiting,
        sum((k.counts).waiting - k.in_hand)::bigint as entries_left,
        sum((k.counts).batches_init)::bigint as batches_init
    from leads as l
    inner join known as k on l.migration_id = k.migration_id and l.queue_name = k.queue_name
    where l.queue_name <> l.later
    group by l.migration_id, l.later
),

-- With that, and the seconds for it by itself: for ever where its own batches do not move, none where it can only wait.
paced as (
    select
        o.*,
        least(o.started_at, c.began_at) as began_at,
        coalesce(c.queues, 0) as queues,
        (o.counts).waiting + coalesce(c.waiting, 0) as pending,
        (o.counts).waiting - o.in_hand + coalesce(c.entries_left, 0) as pending_left,
        (o.counts).batches_init + coalesce(c.batches_init, 0) as pending_batches,
        (o.counts).batches_init > 0 and not o.is_served as is_deserted,
        case
            when (o.counts).batches_init + coalesce(c.batches_init, 0) = 0 then 0
            when (o.counts).batches_init > 0 and o.paused_at is not null then 'infinity'
            when o.rate_10m > 0 then ((o.counts).waiting - o.in_hand + coalesce(c.entries_left, 0)) / o.rate_10m
            when (o.counts).batches_init > 0 then 'infinity'
            else 0
        end as seconds
    from known as o
    left join coming as c on o.migration_id = c.migration_id and o.queue_name = c.queue_name
),

slowest as (
    select
        l.migration_id,
        l.later as queue_name,
        max(k.seconds) as seconds,
        bool_or(k.is_deserted) as is_deserted
    from leads as l
    inner join paced as k on l.migration_id = k.migration_id and l.queue_name = k.queue_name
    group by l.migration_id, l.later
),

timed as (
    select
        o.*,
        greatest(o.seconds, b.seconds) as seconds_left,
        o.is_deserted or coalesce(b.is_deserted, false) as is_stuck,
        row_number() over (partition by o.migration_id order by o.began_at, o.queues, o.started_at, o.queue_name)
            as place,
        max(o.seconds) over (partition by o.migration_id) as longest
    from paced as o
    left join slowest as b on o.migration_id = b.migration_id and o.queue_name = b.queue_name
),

ranked as (
    select
        t.*,
        t.pending_batches = 0 and (t.counts).batches_error = 0 and (t.counts).batches > 0 as is_done,
        t.longest > 0
        and t.place = min(t.place) filter (where t.seconds >= 0.95 * t.longest) over (partition by t.migration_id)
            as is_slowest,
        d.run_after,
        d.next_error,
        d.last_tried_at,
        bool_or(d.run_after <= now()) filter (where t.paused_at is null) over (partition by t.migration_id)
            as is_any_due
    from timed as t
    left join lateral (
        select
            q.run_after,
            q.error as next_error,
            coalesce(q.started_at, q.created_at) as last_tried_at
        from rowferry.batch_queue as q
        where
            q.status = 'INIT'
            and q.migration_id = t.migration_id
            and q.queue_name = t.queue_name
        order by q.run_after, q.id
        limit 1
    ) as d on true
),

dated as (
    select
        r.*,
        case
            when r.run_after <= now() and r.is_served and r.paused_at is null then greatest(r.run_after, r.moved_at)
        end as still_since
    from ranked as r
),

stated as (
    select
        d.*,
        case
            when d.pending_batches = 0 and (d.counts).batches_error > 0 then 'needs_operator'
            when d.pending_batches = 0 and (d.counts).batches > 0 then 'done'
            when d.paused_at is not null then 'paused'
            when (d.counts).batches_init = 0 then 'idle'
            when not d.is_served then 'no_workers'
            when d.run_after > now() or o.migration_id is not null then 'waiting'
            when max(d.still_since) over (partition by d.migration_id) < now() - interval '5 minutes' then 'stalled'
            when d.still_since < now() - interval '5 minutes'
                then case when d.claimed > 0 then 'stalled' else 'waiting' end
            else 'running'
        end as state
    from dated as d
    left join rowferry.outages as o on d.migration_id = o.migration_id
)

select
    r.migration_id,
    r.migration,
    r.queue_name,
    r.place as position,
    r.next,
    (r.counts).*,
    r.claimed,
    r.max_claimed,
    r.priority,
    r.weight,
    r.paused_at,
    r.pending,
    r.pending_batches,
    case
        when r.state in ('done', 'needs_operator', 'no_workers') or (r.state = 'paused' and r.claimed = 0) then 0
        else r.rate_1m
    end as rate_1m,
    r.rate_10m,
    case
        when
            r.pending_batches > 0 and r.seconds_left > 0 and r.seconds_left < 'infinity'
            and r.is_any_due and not r.is_stuck
            then make_interval(secs => r.seconds_left)
    end as time_left,
    case when r.run_after <= now() then r.run_after end as due_since,
    case when r.run_after > now() then nullif(r.run_after, 'infinity') end as next_at,
    r.is_done,
    r.is_slowest,
    r.state,
    r.in_hand,
    r.still_since,
    r.done_share,
    r.pause_reason,
    (r.counts).waiting - r.in_hand as entries_left,
    (r.counts).batches_init - least(r.claimed, (r.counts).batches_init) as batches_left,
    r.started_at,
    r.finished_at,
    r.next_error,
    r.last_tried_at,
    r.needs_operator,
    r.pending_left,
    (r.counts).unsettled::double precision / nullif((r.counts).entries - (r.counts).waiting, 0) as failed_share,
    r.is_paused_whole
from stated as r;
