-- Deletes at most `p_limit` DONE batches that finished longer ago than `p_older_than`, the oldest first, with their
-- attempts and entry failures; returns how many. `p_queue_name`: only batches of this queue; null: of all. Call it,
-- each time in a transaction of its own, until it returns less than `p_limit`. Locked batches are skipped.
-- Writes: batch_queue, batch_attempt (and, by cascade, entry_failure). Called by: rowferry prune.
create or replace function rowferry.prune_batches(
    p_older_than interval, p_limit integer, p_queue_name text default null
)
returns integer
language sql
set search_path = pg_catalog, pg_temp
-- `p_limit` is unknown to the planner, which would rather read the whole ledger at each step.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
-- The tally's trigger holds the deleted rows, 1 kB each at most, whatever the session's work_mem is.
set work_mem = '4MB'
as $$
    with old as (
        select q.id
        from rowferry.batch_queue as q
        where
            q.status = 'DONE'
            and q.finished_at < now() - p_older_than
            and (p_queue_name is null or q.queue_name = p_queue_name)
        order by q.finished_at
        limit p_limit
        for update skip locked
    ),

    tried as (
        delete from rowferry.batch_attempt as a
        using old
        where a.batch_id = old.id
    ),

    pruned as (
        delete from rowferry.batch_queue as q
        using old
        where q.id = old.id
        returning q.id
    )

    select count(*)::integer from pruned;
$$;
