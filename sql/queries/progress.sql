-- How far a migration is.

-- name: read_progress
-- The counts of some queues of a migration, in one snapshot.
select *
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
-- The workers of all migrations but for those that count as dead, as in begin_attempt.sql.
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

-- name: read_migration_state
-- How one migration stands: its row of the view, for every screen.
select *
from rowferry.migration_state
where migration = %(migration)s;

-- name: read_queue_status
-- The queues of one migration, or of all where it is null, in the order of their chain: their rows of the view, for every
-- screen. `workers`: live ones that serve it.
select
    s.*,
    s.queue_name as queue,
    (
        select count(*)
        from rowferry.live_workers as w
        where s.queue_name = any(w.queues) and not w.is_silent
    ) as workers
from rowferry.queue_status as s
where %(migration)s::text is null or s.migration = %(migration)s
order by s.migration, s.position;

-- name: read_coverage
-- The folders of a migration's legacy bucket, as they were seen last.
select folders
from rowferry.coverage
where migration = %(migration)s;
