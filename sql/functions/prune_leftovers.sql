-- Looks at `p_limit` attempts with a larger id than `p_after_id` that began longer ago than `p_older_than`, and
-- deletes those whose batch was deleted by hand. Returns the last id that it looked at, null where there was none;
-- call it with that, each time in a transaction of its own, until it returns null. The first call (`p_after_id` 0)
-- also deletes what is from before then: events, workers that were last seen before then and have no open attempt, and
-- the records of uploads that were last worked on before then and that no batch continues.
-- Writes: batch_attempt, event, worker, upload. Called by: rowferry prune.
create or replace function rowferry.prune_leftovers(p_older_than interval, p_after_id bigint, p_limit integer)
returns bigint
language sql
set search_path = pg_catalog, pg_temp
-- `p_limit` is unknown to the planner, which would rather read all batches at each step.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
    delete from rowferry.event as e
    where p_after_id = 0 and e.at < now() - p_older_than;

    delete from rowferry.worker as w
    where
        p_after_id = 0 and w.last_seen_at < now() - p_older_than
        and not exists (
            select from rowferry.batch_attempt as a
            where a.worker_id = w.id and a.finished_at is null
        );

    delete from rowferry.upload as u
    where
        p_after_id = 0 and u.touched_at < now() - p_older_than
        and not exists (
            select from rowferry.batch_queue as q
            where q.id = u.batch_id and q.status = 'INIT'
        )
        and not exists (
            select from rowferry.batch_attempt as a
            inner join rowferry.batch_queue as q on a.batch_id = q.id
            where a.id = u.attempt_id and q.status = 'INIT'
        );

    with looked_at as (
        select
            a.id,
            a.batch_id
        from rowferry.batch_attempt as a
        where a.id > p_after_id and a.started_at < now() - p_older_than
        order by a.id
        limit p_limit
    ),

    pruned as (
        delete from rowferry.batch_attempt as a
        using looked_at as l
        where
            a.id = l.id
            and not exists (
                select from rowferry.batch_queue as q
                where q.id = l.batch_id
            )
    )

    select max(l.id) from looked_at as l;
$$;
