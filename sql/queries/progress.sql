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
    bytes,
    in_hand,
    reached
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

-- name: list_open_attempts
-- The attempts at open batches of a migration, those of dead workers included, but for those that were taken over.
select
    a.attempt_id,
    a.batch_id,
    a.host,
    a.pid,
    a.entry_count,
    a.in_hand,
    a.silent_for
from rowferry.open_attempts as a
inner join rowferry.migration as m on a.migration_id = m.id
where m.name = %(migration)s and a.is_last
order by a.attempt_id;

-- name: count_live_workers
-- The workers of all migrations but for those that count as dead, as in begin_attempts.sql.
select count(*) as workers
from rowferry.live_workers
where not is_silent;

-- name: find_standby_wait
-- The commits in this database that have waited for a synchronous standby for longer than one takes to answer.
select
    count(*) as commits,
    max(clock_timestamp() - a.query_start) as longest
from pg_stat_activity as a
where
    a.datname = current_database()
    and a.wait_event = 'SyncRep'
    and a.query_start < clock_timestamp() - interval '2 seconds';

-- name: count_open_batches
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
    (select count(*) from rowferry.live_workers where not is_silent) as workers;

-- name: read_migration_state
-- How one migration stands, in one word, since when, what holds it and what to type; and the time left, null unless it
-- is running and all its queues move.
select
    s.state,
    make_interval(secs => s.seconds_left) as time_left,
    s.since,
    s.cause,
    s.what_to_do,
    s.held_by,
    s.need_somebody
from rowferry.migration_state as s
where s.migration = %(migration)s;

-- name: read_queue_status
-- The queues of one migration in the order of their chain, with the counts of each.
select
    s.queue_name as queue,
    s.state,
    s.batches,
    s.batches_init,
    s.batches_done,
    s.batches_error,
    s.entries,
    s.waiting,
    coalesce(p.migrated, 0) as migrated,
    coalesce(p.kept, 0) as kept,
    coalesce(p.changed, 0) as changed,
    coalesce(p.deleted, 0) as deleted,
    coalesce(p.missing, 0) as missing,
    coalesce(p.conflict, 0) as conflict,
    coalesce(p.failed, 0) as failed,
    coalesce(p.bytes, 0) as bytes,
    s.in_hand,
    s.reached,
    s.claimed,
    s.max_in_hand,
    s.rate_1m as rate,
    s.time_left,
    s.due_since,
    s.is_done,
    s.pending_batches,
    s.is_slowest
from rowferry.queue_status as s
left join rowferry.progress as p on s.migration_id = p.migration_id and s.queue_name = p.queue_name
where s.migration = %(migration)s
order by s.position;

-- name: read_coverage
-- The folders of a migration's legacy bucket, as they were seen last.
select
    c.folder,
    c.objects,
    c.unnamed,
    c.is_complete,
    c.is_exact
from rowferry.coverage as c
where c.migration = %(migration)s
order by c.folder;
