-- `rowferry watch`: everything on the screen, read again and again.

-- name: watch_transaction
-- All that is shown at once is read at one moment.
set local transaction_isolation = 'repeatable read';

-- name: watch_migration
-- The migration, the bounds of its plan, and the server's time. `replica_lag` is null where there is no replica, or
-- where the role may not see it (it needs pg_monitor); `lost`: silent workers of the last hour.
select
    m.id,
    m.name,
    (m.plan -> 'database' ->> 'max_rows_per_second')::double precision as max_rows_per_second,
    make_interval(secs => (m.plan -> 'database' ->> 'max_replica_lag')::double precision) as max_replica_lag,
    (select max(p.replay_lag) from pg_stat_replication as p) as replica_lag,
    (select coalesce(sum(w.lost), 0)::bigint from rowferry.worker_hosts as w) as lost,
    clock_timestamp() as moment
from rowferry.migration as m
where m.name = %(migration)s;

-- name: watch_throttled
-- The requests a second that live workers get through where a server refuses more, by operation and bucket of the plan,
-- the slowest first.
select
    substring(r.key from '^(.*) ') as place,
    substring(r.key from '[^ ]*$') as operation,
    sum(r.value::double precision) as rate
from rowferry.migration as m
cross join rowferry.live_workers as w
cross join jsonb_each_text(w.request_rates) as r (key, value)
where
    m.name = %(migration)s
    and not w.is_silent
    and substring(r.key from '/([^/]*) [^ ]*$') in (
        m.plan -> 'legacy' ->> 'bucket', m.plan -> 'production' ->> 'bucket'
    )
group by r.key
order by rate, r.key;

-- name: watch_tables
-- The progress of each table.
select
    t.*,
    t.queue_name as queue
from rowferry.table_progress as t
where t.migration_id = %(id)s
order by t.queue_name, t.label;

-- name: watch_workers
-- One row a live worker and claimed batch; a worker without a batch has one row. Its silence is that at the moment of
-- the snapshot, which is older than the clock where a query before this one took long.
select
    w.id,
    w.host,
    w.pid,
    now() - w.last_seen_at as silent_for,
    w.is_silent,
    h.batch_id,
    h.claimed_for,
    h.in_hand,
    h.entry_count
from rowferry.live_workers as w
left join rowferry.claimed_batches as h on w.id = h.worker_id
order by w.host, w.pid, w.id, h.started_at;

-- name: watch_reasons
-- Why batches are in ERROR, the last failure first: the last 200 reasons of each queue.
select
    r.queue,
    r.outcome,
    r.reason,
    r.entries,
    r.batches,
    left(coalesce(r.example_key, ''), 200) as example_key,
    r.last_failed_at
from (
    select
        e.*,
        e.queue_name as queue,
        row_number() over (partition by e.queue_name order by e.last_failed_at desc, e.entries desc) as place
    from rowferry.error_reasons as e
    where e.migration = %(migration)s
) as r
where r.place <= 200
order by r.last_failed_at desc, r.entries desc;

-- name: watch_delayed
-- The batches that wait for their next attempt, when the first is due, and the error of most of them; one row a queue.
-- `next_at` is null where an operator has set every run_after to infinity. Asked by queue, with which the index of
-- waiting batches begins: batches that are due already are not read.
select
    q.queue_name as queue,
    count(*) as batches,
    nullif(min(q.run_after), 'infinity') as next_at,
    mode() within group (order by q.error) as error
from (
    select distinct t.queue_name
    from rowferry.table_progress as t
    where t.migration_id = %(id)s
) as u
inner join rowferry.batch_queue as q on u.queue_name = q.queue_name
where q.status = 'INIT' and q.run_after > statement_timestamp() and q.migration_id = %(id)s
group by q.queue_name;

-- name: watch_pace
-- The rate of each queue in each whole slice of ten seconds, of the last ten minutes or since it began: `rates` in
-- entries a second, the latest last.
select
    s.queue,
    array_agg(coalesce(f.entries, 0) / 10.0::double precision order by s.began_at) as rates
from (
    select
        t.queue_name as queue,
        generate_series(
            date_bin('10 seconds', greatest(min(t.started_at), now() - interval '10 minutes'), 'epoch'),
            date_bin('10 seconds', now(), 'epoch') - interval '10 seconds',
            interval '10 seconds'
        ) as began_at
    from rowferry.table_progress as t
    where t.migration_id = %(id)s
    group by t.queue_name
) as s
left join (
    select
        b.queue_name as queue,
        date_bin('10 seconds', b.finished_at, 'epoch') as began_at,
        sum(b.entry_count)::double precision as entries
    from rowferry.finished_batches as b
    where b.migration = %(migration)s and b.finished_at > now() - interval '11 minutes'
    group by 1, 2
) as f on s.queue = f.queue and s.began_at = f.began_at
group by s.queue;

-- name: watch_host_rates
-- The entries a second of each host and queue, over the last minute, reckoned as in rowferry.rates.
select
    m.queue_name as queue,
    m.host,
    sum(m.entries)::double precision
    / extract(
        epoch from greatest(least(now() - min(m.started_at), interval '1 minute'), interval '1 second')
    )::double precision as rate
from (
    select
        f.queue_name,
        f.host,
        f.entry_count as entries,
        f.started_at
    from rowferry.finished_batches as f
    where f.migration = %(migration)s and f.host is not null and f.finished_at > now() - interval '1 minute'
    union all
    select
        c.queue_name,
        c.host,
        c.in_hand * least(1, 60 / extract(epoch from greatest(c.claimed_for, interval '1 second'))) as entries,
        c.started_at
    from rowferry.claimed_batches as c
    where c.migration = %(migration)s and c.in_hand > 0
) as m
group by m.queue_name, m.host;

-- name: watch_finished
-- The last batches that became DONE or ERROR within half an hour, the last first: 60 of each queue.
select b.*
from (
    select
        f.*,
        f.queue_name as queue,
        row_number() over (partition by f.queue_name order by f.finished_at desc, f.batch_id desc) as place
    from rowferry.finished_batches as f
    where f.migration = %(migration)s and f.finished_at > now() - interval '30 minutes'
) as b
where b.place <= 60
order by b.finished_at desc, b.batch_id desc;
