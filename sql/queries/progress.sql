-- How far a migration is.

-- name: read_progress
-- The counts of some queues of a migration, in one snapshot.
select
    queue_name,
    batches,
    batches_init,
    batches_done,
    batches_error,
    entries,
    waiting,
    migrated,
    kept,
    changed,
    deleted,
    missing,
    conflict,
    failed,
    bytes
from rowferry.progress
where migration = %(migration)s and queue_name = any(%(queues)s::text []);

-- name: count_entries
-- The entries of one table by the form of their key; a null key is unexpected.
select
    count(*) filter (where {is_legacy}) as legacy,
    count(*) filter (where {is_production} and {is_legacy} is not true) as production,
    count(*) filter (where ({is_legacy} or {is_production}) is not true) as unexpected
from {table} as e
where {where};

-- name: read_activity
-- What happens now: the live workers, and the rate of one queue of a migration.
select
    (select count(*) from rowferry.live_workers) as workers,
    coalesce(sum(p.rate), 0)::double precision as rate
from rowferry.throughput as p
inner join rowferry.migration as m on p.migration_id = m.id
where m.name = %(migration)s and p.queue_name = %(queue)s;

-- name: read_migration_status
-- The open batches of one migration, or of one of its queues, how many of them are claimed, and the live workers.
select
    (
        select count(*)
        from rowferry.batch_queue as q
        inner join rowferry.migration as m on q.migration_id = m.id
        where
            q.status = 'INIT'
            and m.name = %(migration)s
            and (%(queue)s::text is null or q.queue_name = %(queue)s)
    ) as open_batches,
    (
        select count(*)
        from rowferry.claimed_batches as h
        where h.migration = %(migration)s and (%(queue)s::text is null or h.queue_name = %(queue)s)
    ) as claimed,
    (select count(*) from rowferry.live_workers) as workers;
