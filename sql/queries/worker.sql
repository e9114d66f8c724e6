-- What a worker asks beside its functions: the claim, the ledger and the verdict are in sql/functions.

-- name: work_left
-- Whether a worker that stops on empty queues has anything to wait for, in them or in those that lead to them. A batch
-- that another worker has locked is still INIT here. Batches that are paused, passed over (of whole migrations, or of
-- single queues of theirs) or due much later do not count. Batches that live workers have claimed are asked for first:
-- beside them, the others need not be searched among those that are finished and not vacuumed yet.
select exists (
    select
    from rowferry.migration as m
    inner join rowferry.find_lines(%(queues)s::text []) as l on m.id = l.migration_id
    where
        m.paused_at is null
        and l.paused_at is null
        and (%(migrations)s::text [] is null or m.name = any(%(migrations)s::text []))
        and m.id <> all(%(passed_over)s::bigint [])
        and not exists (
            select
            from unnest(%(skipped_migrations)s::bigint [], %(skipped_queues)s::text []) as s (migration_id, queue_name)
            where s.migration_id = m.id and s.queue_name = l.queue_name
        )
        and (
            exists (
                select from rowferry.claimed_batches as c
                where c.migration = m.name and c.queue_name = l.queue_name
            )
            or (
                select q.run_after
                from rowferry.batch_queue as q
                where q.status = 'INIT' and q.migration_id = m.id and q.queue_name = l.queue_name
                order by q.run_after, q.id
                limit 1
            ) <= statement_timestamp() + %(horizon)s
        )
) as work_left;

-- name: deferred_work
-- The queues with batches in INIT that `work_left` leaves out: their rows of the view, for every screen.
select s.*
from rowferry.find_lines(%(queues)s::text []) as l
inner join rowferry.queue_status as s on l.migration_id = s.migration_id and l.queue_name = s.queue_name
where
    s.batches_init > 0
    and (%(migrations)s::text [] is null or s.migration = any(%(migrations)s::text []))
order by s.migration_id, s.position;

-- name: look
-- Where the waiting batches of these queues begin, and how many entries of the index were read for that, as PostgreSQL
-- counts them (`track_counts`; null: it is not there). One row of nulls: none waits.
select
    pg_stat_get_xact_tuples_returned(i.id) - i.walked_before as walked,
    o.*
from (
    select
        c.id,
        pg_stat_get_xact_tuples_returned(c.id) as walked_before
    from (select to_regclass('rowferry.batch_queue_due_idx')::oid as id) as c
) as i
left join rowferry.find_oldest(%(queues)s::text []) as o on true;

-- name: keep_alive
-- Shows PostgreSQL that a transaction that waits for S3 is alive: restarts idle_in_transaction_session_timeout.
select 1;

-- name: lock_ledger
-- The lock of a worker's ledger: one session holds it; behind PgBouncer (is_local), one transaction.
select
    case
        when %(is_local)s then pg_advisory_xact_lock(hashtextextended('rowferry.ledger ' || %(worker)s, 0))
        else pg_advisory_lock(hashtextextended('rowferry.ledger ' || %(worker)s, 0))
    end;

-- name: end_lost_ledger
-- Ends the old session of a worker's ledger, found by the lock that it holds: a statement still running there could
-- commit later than what the new session records. `lock_ledger` waits until it is gone.
select pg_terminate_backend(l.pid)
from pg_locks as l
inner join pg_stat_activity as a on l.pid = a.pid
where
    l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('rowferry.ledger ' || %(worker)s, 0)
    and l.pid <> pg_backend_pid()
    and a.usename = session_user;
