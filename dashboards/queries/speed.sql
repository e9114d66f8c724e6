with chosen as (
    select
        s.queue_name,
        s.entries,
        s.waiting,
        s.rate_1m,
        -- Nothing is to be expected of what is paused, of what does not move, or without a worker that serves it.
        case
            when
                s.time_left is not null
                and exists (select from rowferry.live_workers as w where s.queue_name = any(w.queues))
                then s.rate_10m
        end as rate_10m
    from rowferry.queue_status as s
    where s.migration = ${migration:sqlstring} and s.queue_name = any(array[${queue:sqlstring}]::text[])
),

-- Beyond three hours by the minute: a day of a large queue is some thousand sums, and not each of its batches.
bounds as (
    select
        s.step_ms,
        floor($__unixEpochFrom() * 1000.0 / s.step_ms)::bigint + 1 as first_step,
        floor($__unixEpochTo() * 1000.0 / s.step_ms)::bigint as last_step,
        floor(extract(epoch from now()) * 1000 / s.step_ms)::bigint as step_now
    from (
        select case
            when $__unixEpochTo() - $__unixEpochFrom() > 10800 then greatest(60000, $__interval_ms) else $__interval_ms
        end as step_ms
    ) as s
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
    where
        $__unixEpochTo() - $__unixEpochFrom() <= 10800
        and finished_at >= to_timestamp($__unixEpochFrom())
        and migration = ${migration:sqlstring}
        and queue_name = any(array[${queue:sqlstring}]::text[])
    group by 1, 2
    union all
    select
        queue_name,
        minute as began_at,
        entries,
        migrated,
        kept,
        changed,
        deleted,
        missing,
        conflict,
        failed
    from rowferry.finished_minutes
    where
        $__unixEpochTo() - $__unixEpochFrom() > 10800
        and minute >= to_timestamp($__unixEpochFrom())
        and migration = ${migration:sqlstring}
        and queue_name = any(array[${queue:sqlstring}]::text[])
),

finished as (
    select
        c.queue_name,
        floor(extract(epoch from c.began_at) * 1000 / b.step_ms)::bigint as step,
        sum(c.entries) as entries,
        sum(c.migrated) as migrated,
        sum(c.kept) as kept,
        sum(c.changed) as changed,
        sum(c.deleted) as deleted,
        sum(c.missing) as missing,
        sum(c.conflict) as conflict,
        sum(c.failed) as failed
    from counted as c
    cross join bounds as b
    group by 1, 2
),

-- Each step of the time shown: a stall is drawn as zeros, not as a slope.
filled as (
    select
        s.step,
        b.step_ms,
        s.step - b.step_now + 1 as steps_ahead,
        s.step <= b.last_step as is_shown,
        b.last_step > b.step_now as is_future_shown,
        c.queue_name,
        c.waiting,
        c.rate_1m,
        c.rate_10m,
        least(c.entries, c.waiting + coalesce(sum(f.entries) over later, 0)) as entries_left,
        avg(coalesce(f.entries, 0)) over minute as entries,
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
    left join finished as f on c.queue_name = f.queue_name and s.step = f.step
    window
        later as (partition by c.queue_name order by s.step desc rows between unbounded preceding and 1 preceding),
        minute as (
            partition by c.queue_name
            order by s.step
            rows between
            60000 / greatest(
                $__interval_ms, case when $__unixEpochTo() - $__unixEpochFrom() > 10800 then 60000 end
            ) preceding
            and current row
        )
)

-- The step of now is not over: it is not drawn as a dip, and its speed is the rate that every view says. After it there
-- is only what is to be expected.
select
    step * step_ms / 1000.0 as "time",
    case when cardinality(array[${queue:sqlstring}]::text[]) > 1 then queue_name else '' end as "metric",
    case when steps_ahead <= 0 then migrated * 1000.0 / step_ms end as "migrated",
    case when steps_ahead <= 0 then kept * 1000.0 / step_ms end as "kept",
    case when steps_ahead <= 0 then changed * 1000.0 / step_ms end as "changed",
    case when steps_ahead <= 0 then deleted * 1000.0 / step_ms end as "deleted",
    case when steps_ahead <= 0 then missing * 1000.0 / step_ms end as "missing",
    case when steps_ahead <= 0 then conflict * 1000.0 / step_ms end as "conflict",
    case when steps_ahead <= 0 then failed * 1000.0 / step_ms end as "failed",
    case when steps_ahead <= 0 then entries * 1000.0 / step_ms when steps_ahead = 1 then rate_1m end as "speed",
    case when steps_ahead <= 1 then entries_left end as "left",
    case
        when is_future_shown and steps_ahead >= 1 and rate_10m > 0
            then greatest(0, waiting - rate_10m * (steps_ahead - 1) * step_ms / 1000.0)
    end as "at this pace"
from filled
where is_shown
order by 1, 2
