-- Work is summed over the chosen queues. What is left is that of the chosen queue that has the most before it, and an
-- entry leaves it when this queue has finished it, or when one that leads to it has failed on it.
with recursive queues as materialized (
    select
        queue_name,
        next,
        position,
        entries + pending - waiting as entries,
        pending_left as entries_left,
        pending_batches > 0 as is_pending,
        extract(epoch from time_left) as seconds_left
    from rowferry.queue_status
    where migration = ${migration:sqlstring}
),

last_one as (
    select queue_name
    from queues
    where queue_name = any(array[${queue:sqlstring}]::text[])
    order by entries_left desc, position desc
    limit 1
),

before as (
    select queue_name from last_one
    union
    select q.queue_name
    from queues as q
    inner join before as b on b.queue_name = any(q.next)
),

chosen as (
    select
        (select queue_name from last_one) as last_queue,
        max(entries_left) as waiting,
        max(entries) as entries,
        -- Nothing is to be expected of what is paused, does not move, or has no worker: it has no time left.
        case when bool_and(seconds_left is not null or not is_pending) then max(seconds_left) end as seconds_left
    from queues
    where queue_name = any(array[${queue:sqlstring}]::text[])
    having count(*) > 0
),

bounds as (
    select
        s.step_ms,
        floor($__unixEpochFrom() * 1000.0 / s.step_ms)::bigint + 1 as first_step,
        floor($__unixEpochTo() * 1000.0 / s.step_ms)::bigint as last_step,
        floor(extract(epoch from now()) * 1000 / s.step_ms)::bigint as step_now
    from (select $__interval_ms as step_ms) as s
),

counted as (
    select
        queue_name,
        date_bin('$__interval_ms ms', finished_at, 'epoch') as began_at,
        sum(entry_count) as entries,
        sum(migrated) as migrated,
        sum(kept) as kept,
        sum(changed) as changed,
        sum(deleted) as deleted,
        sum(missing) as missing,
        sum(conflict) as conflict,
        sum(failed) as failed
    from rowferry.finished_batches
    where finished_at >= to_timestamp($__unixEpochFrom()) and migration = ${migration:sqlstring}
    group by 1, 2
),

finished as (
    select
        floor(extract(epoch from c.began_at) * 1000 / b.step_ms)::bigint as step,
        sum(case
            when c.queue_name = h.last_queue then c.entries
            when c.queue_name in (select queue_name from before) then c.missing + c.conflict + c.failed
        end) as gone,
        sum(c.migrated) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as migrated,
        sum(c.kept) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as kept,
        sum(c.changed) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as changed,
        sum(c.deleted) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as deleted,
        sum(c.missing) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as missing,
        sum(c.conflict) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as conflict,
        sum(c.failed) filter (where c.queue_name = any(array[${queue:sqlstring}]::text[])) as failed
    from counted as c
    cross join bounds as b
    cross join chosen as h
    group by 1
),

-- Each step of the time shown: a stall is drawn as zeros, not as a slope.
filled as (
    select
        s.step,
        b.step_ms,
        s.step - b.step_now + 1 as steps_ahead,
        s.step <= b.last_step as is_shown,
        b.last_step > b.step_now as is_future_shown,
        c.waiting,
        c.seconds_left,
        least(c.entries, c.waiting + coalesce(sum(f.gone) over later, 0)) as entries_left,
        coalesce(f.migrated, 0) as migrated,
        coalesce(f.kept, 0) as kept,
        coalesce(f.changed, 0) as changed,
        coalesce(f.deleted, 0) as deleted,
        coalesce(f.missing, 0) as missing,
        coalesce(f.conflict, 0) as conflict,
        coalesce(f.failed, 0) as failed
    from chosen as c
    cross join bounds as b
    cross join generate_series(b.first_step, greatest(b.last_step, b.step_now)) as s (step)
    left join finished as f on s.step = f.step
    window later as (order by s.step desc rows between unbounded preceding and 1 preceding)
)

-- The step of now is not over: it is not drawn as a dip. After it there is only what is to be expected, which ends when
-- the number Time left says.
select
    step * step_ms / 1000.0 as "time",
    case when steps_ahead <= 0 then migrated * 1000.0 / step_ms end as "migrated",
    case when steps_ahead <= 0 then kept * 1000.0 / step_ms end as "kept",
    case when steps_ahead <= 0 then changed * 1000.0 / step_ms end as "changed",
    case when steps_ahead <= 0 then deleted * 1000.0 / step_ms end as "deleted",
    case when steps_ahead <= 0 then missing * 1000.0 / step_ms end as "missing",
    case when steps_ahead <= 0 then conflict * 1000.0 / step_ms end as "conflict",
    case when steps_ahead <= 0 then failed * 1000.0 / step_ms end as "failed",
    case when steps_ahead <= 1 then entries_left end as "left",
    case
        when is_future_shown and steps_ahead >= 1 and seconds_left > 0
            then greatest(0, waiting * (1 - (steps_ahead - 1) * step_ms / 1000.0 / seconds_left))
    end as "at this pace"
from filled
where is_shown
order by 1
