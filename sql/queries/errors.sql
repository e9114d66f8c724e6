-- What is in ERROR, for `rowferry errors` and `rowferry requeue`.

-- name: find_unusable
-- The live workers that cannot work on a migration, or on a queue of it, with the reason; how many there are of them.
-- Those that wait for a connection work on none: `migration` is null.
with idle as (
    select
        r.key,
        r.value as error,
        m.name as migration,
        nullif(substr(r.key, length(m.id::text) + 2), '') as queue_name,
        w.host,
        w.pid
    from rowferry.live_workers as w
    cross join jsonb_each_text(w.unusable) as r (key, value)
    inner join rowferry.migration as m on r.key = m.id::text or r.key like m.id || ' %%'
    where %(migration)s::text is null or m.name = %(migration)s
    union all
    select
        '' as key,
        w.waits_for as error,
        null as migration,
        null as queue_name,
        w.host,
        w.pid
    from rowferry.live_workers as w
    where w.waits_for is not null
)

select
    i.error,
    i.migration,
    i.queue_name,
    array_agg(concat('process ', i.pid, ' of ', i.host) order by i.host, i.pid) as workers,
    (select count(*) from rowferry.live_workers) as live
from idle as i
group by i.error, i.key, i.migration, i.queue_name
order by i.key, i.error;

-- name: error_groups
-- Why batches are in ERROR: one row a reason, the most entries first.
select
    e.*,
    count(*) over () as total
from rowferry.error_reasons as e
where
    (%(migration)s::text is null or e.migration = %(migration)s)
    and (%(queue)s::text is null or e.queue_name = %(queue)s)
order by e.entries desc, e.migration, e.outcome, e.reason
limit %(limit)s;

-- name: failed_entries
-- The entries that keep batches in ERROR, the last failure first. `total` is read from the sums of their reasons: to
-- count a million beside the sort took seconds.
select
    m.name as migration,
    q.queue_name,
    f.batch_id,
    q.payload ->> 'entries' as entries,
    f.entry_id,
    f.key,
    f.outcome,
    f.reason,
    f.error,
    f.attempt,
    f.failed_at,
    (
        select coalesce(sum(e.entries), 0)::bigint
        from rowferry.error_reasons as e
        where
            e.example_key is not null
            and (%(migration)s::text is null or e.migration = %(migration)s)
            and (%(queue)s::text is null or e.queue_name = %(queue)s)
    ) as total
from rowferry.entry_failure as f
inner join rowferry.batch_queue as q on f.batch_id = q.id
inner join rowferry.migration as m on q.migration_id = m.id
where
    q.status = 'ERROR'
    and f.outcome in ('missing', 'conflict', 'failed')
    and (%(migration)s::text is null or m.name = %(migration)s)
    and (%(queue)s::text is null or q.queue_name = %(queue)s)
order by f.failed_at desc, f.batch_id, f.entry_id
limit %(limit)s;
