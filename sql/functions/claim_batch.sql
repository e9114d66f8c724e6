-- rowferry.claim_batch(queues text[])
--   Locks the oldest due batch of the given queues and returns it; no row when none is free.
--   Batches of paused migrations are passed over.
--   `revision` is that of the plan the batch belongs to.
--   Writes: nothing; the row lock in the caller's transaction is the lease. Called by: rowferry_worker/claim.py.
create or replace function rowferry.claim_batch(queues text [])
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
as $$
    with picked as materialized (
        select q.*
        from rowferry.batch_queue as q
        where
            q.status = 'INIT'
            and q.run_after <= statement_timestamp()
            and q.queue_name = any($1)
            and q.migration_id = any(array(select m.id from rowferry.migration as m where m.paused_at is null))
            -- Where all are paused, this alone is looked at, and not every batch that waits.
            and exists (select from rowferry.migration as m where m.paused_at is null)
        order by q.run_after, q.id
        limit 1
        for update skip locked
    )

    select
        picked.id,
        picked.migration_id,
        m.revision,
        picked.queue_name,
        picked.payload,
        picked.entry_count,
        picked.max_attempts,
        picked.requeues,
        picked.crashes
    from picked
    inner join rowferry.migration as m on picked.migration_id = m.id;
$$;
