-- rowferry.prune_batches(older_than interval, most integer)
--   Deletes at most `most` DONE batches that finished longer ago than `older_than`, the oldest first, with their
--   attempts and entry failures, and returns how many; to be called until it returns less than `most`, each time in a
--   transaction of its own. Batches that somebody holds locked are passed over.
--   Writes: batch_queue, batch_attempt (and, by cascade, entry_failure). Called by: rowferry prune.
create or replace function rowferry.prune_batches(older_than interval, most integer)
returns integer
language sql
set search_path = pg_catalog, pg_temp
-- `most` is unknown to the planner, which would rather read the whole ledger at each step.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
-- The tally's trigger holds the deleted rows, 1 kB each at most; what they need is not left to the session's work_mem.
set work_mem = '4MB'
as $$
    with old as (
        select q.id
        from rowferry.batch_queue as q
        where q.status = 'DONE' and q.finished_at < now() - $1
        order by q.finished_at
        limit $2
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
