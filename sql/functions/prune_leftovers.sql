-- Deletes what is from longer ago than `p_older_than` and belongs to nothing any more: events, workers that were last
-- seen before then and have no open attempt, the records of uploads that no batch continues, and attempts whose batch
-- was deleted by hand.
-- Writes: batch_attempt, event, worker, upload. Called by: rowferry prune.
create or replace function rowferry.prune_leftovers(p_older_than interval)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    delete from rowferry.event as e where e.at < now() - p_older_than;

    delete from rowferry.worker as w
    where
        w.last_seen_at < now() - p_older_than
        and not exists (
            select from rowferry.batch_attempt as a
            where a.worker_id = w.id and a.finished_at is null
        );

    delete from rowferry.upload as u
    where
        u.touched_at < now() - p_older_than
        and not exists (
            select from rowferry.batch_queue as q
            where q.id = u.batch_id and q.status = 'INIT'
        )
        and not exists (
            select from rowferry.batch_attempt as a
            inner join rowferry.batch_queue as q on a.batch_id = q.id
            where a.id = u.attempt_id and q.status = 'INIT'
        );

    delete from rowferry.batch_attempt as a
    where
        a.started_at < now() - p_older_than
        and not exists (select from rowferry.batch_queue as q where q.id = a.batch_id);
$$;
