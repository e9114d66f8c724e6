-- rowferry.claim_batch(queues text[], migrations text[], passed_over bigint[])
--   Locks the oldest due batch of the given queues and returns it; no row when none is free.
--   `migrations`: the names of those to serve, null: all; `passed_over`: the ids of those to leave alone.
--   Batches of paused migrations are passed over. Of several migrations and queues, those come first whose oldest
--   batch has been due for longest, be it free or not.
--   `revision` is that of the plan the batch belongs to.
--   Writes: nothing; the row lock in the caller's transaction is the lease. Called by: rowferry_worker/claim.py.
create or replace function rowferry.claim_batch(
    queues text [], migrations text [] default null, passed_over bigint [] default '{}'
)
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
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
-- The plan is kept for the session, so it must not come from a moment when the queue was empty or not yet analysed:
-- batch_queue_due_idx is always right.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    line record;
begin
    for line in
        select
            m.id as migration_id,
            m.revision,
            u.queue_name,
            oldest.run_after,
            oldest.id
        from rowferry.migration as m
        cross join unnest($1) as u (queue_name)
        cross join lateral (
            select
                q.run_after,
                q.id
            from rowferry.batch_queue as q
            where q.status = 'INIT' and q.migration_id = m.id and q.queue_name = u.queue_name
            order by q.run_after, q.id
            limit 1
        ) as oldest
        where
            m.paused_at is null
            and ($2 is null or m.name = any($2))
            and m.id <> all($3)
            and oldest.run_after <= statement_timestamp()
        order by oldest.run_after, oldest.id
    loop
        return query
        select
            q.id,
            q.migration_id,
            line.revision,
            q.queue_name,
            q.payload,
            q.entry_count,
            q.max_attempts,
            q.requeues,
            q.crashes
        from rowferry.batch_queue as q
        where
            q.status = 'INIT'
            and q.migration_id = line.migration_id
            and q.queue_name = line.queue_name
            -- Finished batches stay in the index until no transaction can see them any more: walk past them but once.
            and (q.run_after, q.id) >= (line.run_after, line.id)
            and q.run_after <= statement_timestamp()
        order by q.run_after, q.id
        limit 1
        for update skip locked;
        if found then
            return;
        end if;
    end loop;
end;
$$;
