-- The passes over entries whose rows stay.

-- name: last_pass
-- The newest pass over these entries of a migration, by its id or its name, and whether its batches wait.
select
    p.number,
    p.began_at,
    p.watermark,
    exists (
        select from rowferry.batch_queue as q
        where
            q.migration_id = p.migration_id
            and q.queue_name = %(queue)s
            and q.status = 'INIT'
            and q.payload ->> 'entries' = p.label
    ) as waits,
    m.plan <> %(plan)s as is_of_another_plan
from rowferry.pass as p
inner join rowferry.migration as m on p.migration_id = m.id
where (m.id = %(migration_id)s or m.name = %(name)s) and p.label = %(label)s
order by p.number desc
limit 1;

-- name: count_renewed
-- The batches in ERROR that the next pass takes up again, and their entries.
select
    count(*) as batches,
    coalesce(sum(q.entry_count), 0)::bigint as entries
from rowferry.batch_queue as q
where
    q.migration_id = %(migration_id)s
    and q.queue_name = %(queue)s
    and q.status = 'ERROR'
    and q.payload ->> 'entries' = %(label)s
    and q.payload ? 'read_again';

-- name: find_lag
-- How far the clock that writes a column without a time zone is behind UTC, at most: its newest time that is past was
-- written by now. Null: there is none.
select (now() at time zone 'UTC') - max(e.{changed}) as lag
from {table} as e
where e.{changed} <= now() at time zone 'UTC';

-- name: read_switch
-- Since when the application may be using the production bucket, and when the newest pass ended: what it has copied is
-- known as a copy by that. Null: there was none.
select
    m.id,
    m.moment_at,
    m.switched_at,
    m.was_switched_at,
    m.switched_back_at,
    coalesce(
        (
            select max(q.finished_at)
            from rowferry.batch_queue as q
            where q.migration_id = m.id and q.queue_name = %(queue)s
        ),
        (select max(p.began_at) from rowferry.pass as p where p.migration_id = m.id),
        (
            select max(q.created_at)
            from rowferry.batch_queue as q
            where
                q.migration_id = m.id
                and q.queue_name = %(queue)s
                and q.payload ->> 'objects' = 'listing'
        )
    ) as last_pass_at
from rowferry.migration as m
where m.name = %(name)s;

-- name: read_timeline
-- How many seconds ago a migration was made, its application may have been switched, and it was switched and went back
-- before. Null: that has not happened.
select
    extract(epoch from clock_timestamp() - m.created_at)::float8 as began,
    extract(epoch from clock_timestamp() - least(%(switched_at)s::timestamptz, m.moment_at))::float8 as switched,
    extract(epoch from clock_timestamp() - m.was_switched_at)::float8 as was_switched,
    extract(epoch from clock_timestamp() - m.switched_back_at)::float8 as switched_back
from rowferry.migration as m
where m.id = %(migration_id)s;

-- name: count_left_behind
-- The entries of these labels that could not be migrated, and the batches in ERROR. Where rows move, no verify looks at
-- such entries.
select
    coalesce(sum(t.missing + t.conflict + t.failed), 0)::bigint as entries,
    coalesce(sum(t.batches_error), 0)::bigint as batches
from rowferry.table_progress as t
where t.migration = %(name)s and t.queue_name = %(queue)s and t.label = any(%(labels)s);

-- name: list_unserved_queues
-- Those of some queues that no live worker serves.
select u.name
from unnest(%(queues)s::text []) as u (name)
where not exists (select from rowferry.live_workers as w where u.name = any(w.queues))
order by u.name;

-- name: read_now
-- The database's time.
select clock_timestamp() as now;
