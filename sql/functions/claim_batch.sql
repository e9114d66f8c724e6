-- rowferry.claim_batch(queues text[], migrations text[], passed_over bigint[])
--   Locks the oldest due batch of the given queues and returns it; no row when none is free.
--   `migrations`: the names of those to serve, null: all; `passed_over`: the ids of those to leave alone.
--   Batches of paused migrations are passed over. Of several migrations and queues, those come first whose oldest
--   batch has been due for longest, be it free or not.
--   `revision` is that of the plan the batch belongs to.
--   A session goes on where it last claimed a batch: finished ones stay in the index for as long as a transaction can
--   see them. It looks from the beginning every 10 seconds, and before it returns no row: for no longer is a batch
--   passed over that has come back meanwhile.
--   Writes: nothing; the row lock in the caller's transaction is the lease. The session's setting rowferry.claim_starts
--   says where to go on, the transaction's rowferry.claims what it has claimed. Called by: rowferry_worker/claim.py.
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
    claimed record;
    starts jsonb := nullif(current_setting('rowferry.claim_starts', true), '');
    is_fresh boolean := false;
begin
    loop
        if starts is null
            or (starts ->> 'looked_at')::timestamptz not between
            statement_timestamp() - interval '10 seconds' and statement_timestamp()
        then
            starts := rowferry.find_oldest($1);
            is_fresh := true;
        end if;

        for line in
            select
                m.id as migration_id,
                m.revision,
                u.queue_name,
                s.name,
                oldest.run_after,
                oldest.id
            from rowferry.migration as m
            cross join unnest($1) as u (queue_name)
            cross join lateral (select concat_ws(' ', m.id, u.queue_name) as name) as s
            cross join lateral (
                select
                    q.run_after,
                    q.id
                from rowferry.batch_queue as q
                where
                    q.status = 'INIT'
                    and q.migration_id = m.id
                    and q.queue_name = u.queue_name
                    and (q.run_after, q.id) >= (
                        coalesce((starts -> s.name ->> 0)::timestamptz, '-infinity'),
                        coalesce((starts -> s.name ->> 1)::bigint, 0)
                    )
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
            select
                q.id,
                q.migration_id,
                line.revision,
                q.queue_name,
                q.payload,
                q.entry_count,
                q.max_attempts,
                q.requeues,
                q.crashes,
                q.run_after
            into claimed
            from rowferry.batch_queue as q
            where
                q.status = 'INIT'
                and q.migration_id = line.migration_id
                and q.queue_name = line.queue_name
                -- Walk past finished batches but once.
                and (q.run_after, q.id) >= (line.run_after, line.id)
                and q.run_after <= statement_timestamp()
            order by q.run_after, q.id
            limit 1
            for update skip locked;
            if found then
                starts := starts || jsonb_build_object(line.name, jsonb_build_array(claimed.run_after, claimed.id));
                perform set_config('rowferry.claim_starts', starts::text, false);
                perform set_config(
                    'rowferry.claims',
                    concat_ws(' ', nullif(current_setting('rowferry.claims', true), ''), rowferry.seal_claim(claimed.id)),
                    true
                );
                return query select
                    claimed.id,
                    claimed.migration_id,
                    claimed.revision,
                    claimed.queue_name,
                    claimed.payload,
                    claimed.entry_count,
                    claimed.max_attempts,
                    claimed.requeues,
                    claimed.crashes;
                return;
            end if;
        end loop;

        exit when is_fresh;
        starts := null;
    end loop;
end;
$$;
