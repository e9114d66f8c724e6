-- rowferry.begin_attempt(batch_id bigint, requeues integer, worker_id text, reachable_for interval)
--   Records an attempt at a claimed batch. Returns its id, its number (1 for the first that counts), and what lies
--   behind it:
--   `crashes`: how many attempts ended with the death of their worker;
--   `losses`: how many ended with the loss of their connection while their worker lived, the last `since_loss` ago;
--   `unclear_for`: not null where the worker of an open attempt has fallen silent and may yet speak again: how long
--   until it counts as dead. The caller puts the batch back until then.
--   An open attempt of this worker, or of one whose session holds its ledger's lock, is no crash: its worker lives, and
--   will close it. Without the lock (its session was lost, or PgBouncer stands between) a worker is dead after
--   10 s without a heartbeat, if the caller has reached the database for that long (`reachable_for`; null: it has);
--   at once where it has signed off, or is not known.
--   Attempts that are older than the batch were at another one with its number: the queue was emptied meanwhile.
--   To be called on an autocommit connection of its own, so that the record outlives a crash.
--   Writes: batch_attempt. Called by: rowferry_worker/claim.py.
create or replace function rowferry.begin_attempt(
    batch_id bigint, requeues integer, worker_id text, reachable_for interval default null
)
returns table (
    attempt_id bigint, number integer, crashes integer, losses integer, since_loss interval, unclear_for interval
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    since timestamptz;
    open_workers text [];
begin
    select q.created_at into since from rowferry.batch_queue as q where q.id = $1;

    select
        1 + count(*) filter (where a.verdict in ('RETRY', 'DONE', 'ERROR')),
        count(*) filter (where a.verdict = 'LOST'),
        clock_timestamp() - max(a.finished_at) filter (where a.verdict = 'LOST'),
        array_agg(a.worker_id) filter (where a.verdict is null and a.worker_id <> $3)
    into strict number, losses, since_loss, open_workers
    from rowferry.batch_attempt as a
    where a.batch_id = $1 and a.requeues = $2 and a.started_at >= since;

    crashes := 0;
    if open_workers is not null then
        select
            count(*) filter (where o.dead_at <= clock_timestamp()),
            max(o.dead_at) filter (where o.dead_at > clock_timestamp()) - clock_timestamp()
        into strict crashes, unclear_for
        from (
            select
                case
                    when w.id is null or w.stopped_at is not null then '-infinity'::timestamptz
                    else greatest(w.last_seen_at, clock_timestamp() - $4) + interval '10 seconds'
                end as dead_at
            from unnest(open_workers) as u (worker_id)
            left join rowferry.worker as w on u.worker_id = w.id
            where
                hashtextextended('rowferry.ledger ' || u.worker_id, 0) not in (
                    select (l.classid::bigint << 32) | l.objid::bigint
                    from pg_locks as l
                    where
                        l.locktype = 'advisory' and l.objsubid = 1
                        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
                )
        ) as o;
        number := number + crashes;
    end if;

    insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
    values ($1, $2, number, $3)
    returning id into strict attempt_id;
    return next;
end;
$$;
