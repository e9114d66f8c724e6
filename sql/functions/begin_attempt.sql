-- Records an attempt at a claimed batch, in one round trip and one commit; `p_requeues`: those of the batch. Returns
-- the attempt's id, its number (1 for the first that counts), and
-- `crashes`: attempts that ended with the death of their worker;
-- `losses`: attempts that lost their connection while their worker lived, the last one `since_loss` ago;
-- `since_first`: how long ago the first of all attempts began, at the batch that it was split from and before it was
-- put back as well; null: this is the first;
-- `unclear_for`: how long until the silent worker of an open attempt counts as dead; not null: put the batch back;
-- `silent_workers`: these workers, {"id": "process"}: those that have ended, by the caller's kernel, come in `p_ended`.
-- An open attempt is a crash once its worker, whose session does not hold the lock of its ledger, has sent no heartbeat
-- for 10 s while the caller reached the database (`p_reachable_for`; null: it has), has deregistered or ended, or is
-- unknown. Attempts older than the batch belong to another one with the same id: the queue was emptied meanwhile.
-- Call it on an autocommit connection of its own, so that the record outlives a crash.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: batch_attempt. Called by: rowferry_worker/attempts.py.
create or replace function rowferry.begin_attempt(
    p_batch_id bigint,
    p_requeues integer,
    p_worker_id text,
    p_reachable_for interval default null,
    p_ended text [] default '{}'
)
returns table (
    attempt_id bigint,
    number integer,
    crashes integer,
    losses integer,
    since_loss interval,
    since_first interval,
    unclear_for interval,
    silent_workers jsonb
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_open_workers text [];
begin
    perform rowferry.check_worker(p_worker_id);
    select
        1 + count(*) filter (where a.verdict in ('RETRY', 'DONE', 'ERROR')),
        count(*) filter (where a.verdict = 'LOST'),
        clock_timestamp() - max(a.finished_at) filter (where a.verdict = 'LOST'),
        clock_timestamp() - least(
            min(a.started_at), (select q.tried_at from rowferry.batch_queue as q where q.id = p_batch_id)
        ),
        array_agg(a.worker_id) filter (where a.verdict is null and a.worker_id <> p_worker_id)
    into strict number, losses, since_loss, since_first, v_open_workers
    from rowferry.batch_attempt as a
    where
        a.batch_id = p_batch_id
        and a.requeues = p_requeues
        and a.started_at >= (
            select q.created_at from rowferry.batch_queue as q where q.id = p_batch_id
        );

    select
        count(*) filter (where o.dead_at <= clock_timestamp()),
        max(o.dead_at) filter (where o.dead_at > clock_timestamp()) - clock_timestamp(),
        coalesce(
            jsonb_object_agg(o.id, o.process) filter (where o.process is not null and o.dead_at > clock_timestamp()),
            '{}'
        )
    into strict crashes, unclear_for, silent_workers
    from (
        select
            w.id,
            w.process,
            case
                when w.id is null or w.stopped_at is not null or w.id = any(p_ended)
                    then '-infinity'::timestamptz
                else greatest(w.last_seen_at, clock_timestamp() - p_reachable_for) + interval '10 seconds'
            end as dead_at
        from unnest(v_open_workers) as u (worker_id)
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

    insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
    values (p_batch_id, p_requeues, number, p_worker_id)
    returning batch_attempt.id into strict attempt_id;
    return next;
end;
$$;
