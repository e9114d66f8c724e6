-- rowferry.prune_leftovers(older_than interval, after_id bigint, most integer)
--   Looks at `most` attempts with a larger id than `after_id` that began longer ago than `older_than`, and deletes those
--   whose batch is gone: deleted by hand. Returns the last id that it looked at, null where there was none; to be called
--   with that until it returns null, each time in a transaction of its own. The first call (`after_id` 0) also deletes
--   the workers that were last seen before then and have no open attempt.
--   Writes: batch_attempt, worker. Called by: rowferry prune.
create or replace function rowferry.prune_leftovers(older_than interval, after_id bigint, most integer)
returns bigint
language sql
set search_path = pg_catalog, pg_temp
-- `most` is unknown to the planner, which would rather read all batches at each step.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    delete from rowferry.worker as w
    where
        $2 = 0 and w.last_seen_at < now() - $1
        and not exists (
            select from rowferry.batch_attempt as a
            where a.worker_id = w.id and a.finished_at is null
        );

    with looked_at as (
        select
            a.id,
            a.batch_id
        from rowferry.batch_attempt as a
        where a.id > $2 and a.started_at < now() - $1
        order by a.id
        limit $3
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
