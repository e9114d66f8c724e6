-- rowferry.claim_more(batch_id bigint, most integer)
--   Locks the batches that are due next in the migration and the queue of a claimed batch, `most` of them at the most,
--   and returns them in the order in which they were due. A batch with a crash behind it is never among them, and where
--   the claimed batch has one, nothing is: such a batch is worked on alone.
--   Writes: nothing; the row locks in the caller's transaction are the lease. Called by: rowferry_worker/claim.py.
create or replace function rowferry.claim_more(batch_id bigint, most integer)
returns table (
    id bigint,
    migration_id bigint,
    revision integer,
    queue_name text,
    payload jsonb,
    entry_count integer,
    max_attempts integer,
    requeues integer,
    crashes integer
)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
    with claimed as (
        select
            q.*,
            m.revision
        from rowferry.batch_queue as q
        inner join rowferry.migration as m on q.migration_id = m.id
        where
            q.id = $1 and q.crashes = 0
            and 0 = (
                select count(*) from rowferry.batch_attempt as a
                where a.batch_id = q.id and a.requeues = q.requeues and a.verdict is null
            )
    )

    select
        q.id,
        q.migration_id,
        c.revision,
        q.queue_name,
        q.payload,
        q.entry_count,
        q.max_attempts,
        q.requeues,
        q.crashes
    from claimed as c
    cross join lateral (
        select n.*
        from rowferry.batch_queue as n
        where
            n.status = 'INIT'
            and n.migration_id = c.migration_id
            and n.queue_name = c.queue_name
            and (n.run_after, n.id) > (c.run_after, c.id)
            and n.run_after <= statement_timestamp()
            and n.crashes = 0
            -- Counted and not asked by `not exists`, which would read the whole ledger for a join.
            and 0 = (
                select count(*) from rowferry.batch_attempt as a
                where a.batch_id = n.id and a.requeues = n.requeues and a.verdict is null
            )
        order by n.run_after, n.id
        limit $2
        for update skip locked
    ) as q;
$$;
