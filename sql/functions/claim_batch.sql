-- rowferry.claim_batch(p_queues text[], p_migrations text[], p_passed_over bigint[])
--   Locks the oldest due batch of the given queues and returns it; no row when none is free.
--   `p_migrations`: the names of the migrations to serve, null: all; `p_passed_over`: the ids of migrations to skip.
--   Batches of paused migrations are left out. Of several migrations and queues, the one whose oldest batch has been
--   due for longest comes first, whether that batch is free or not.
--   `revision` is that of the batch's plan.
--   A session continues where it last claimed a batch: finished batches stay in the index for as long as a transaction
--   can see them. It looks from the beginning every 10 seconds, and before it returns no row: a batch that returned to
--   the queue meanwhile is missed for no longer than that.
--   Writes: nothing; the row lock in the caller's transaction is the lease. The session's setting rowferry.claim_starts
--   says where to continue, the transaction's rowferry.claims what it has claimed.
--   Called by: rowferry_worker/batch/claim.py.
create or replace function rowferry.claim_batch(
    p_queues text [], p_migrations text [] default null, p_passed_over bigint [] default '{}'
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
-- The session keeps its plan, so the plan must not come from a moment when the queue was empty or not yet analysed:
-- batch_queue_due_idx is always right.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_oldest record;
    v_claimed record;
    v_starts jsonb := nullif(current_setting('rowferry.claim_starts', true), '');
    v_is_fresh boolean := false;
begin
    loop
        if v_starts is null
            or (v_starts ->> 'looked_at')::timestamptz not between
            statement_timestamp() - interval '10 seconds' and statement_timestamp()
        then
            v_starts := rowferry.find_oldest(p_queues);
            v_is_fresh := true;
        end if;

        for v_oldest in
            select
                m.id as migration_id,
                m.revision,
                u.queue_name,
                s.name,
                oldest.run_after,
                oldest.id
            from rowferry.migration as m
            cross join unnest(p_queues) as u (queue_name)
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
                        coalesce((v_starts -> s.name ->> 0)::timestamptz, '-infinity'),
                        coalesce((v_starts -> s.name ->> 1)::bigint, 0)
                    )
                order by q.run_after, q.id
                limit 1
            ) as oldest
            where
                m.paused_at is null
                and (p_migrations is null or m.name = any(p_migrations))
                and m.id <> all(p_passed_over)
                and oldest.run_after <= statement_timestamp()
            order by oldest.run_after, oldest.id
        loop
            select
                q.id,
                q.migration_id,
                v_oldest.revision,
                q.queue_name,
                q.payload,
                q.entry_count,
                q.max_attempts,
                q.requeues,
                q.crashes,
                q.run_after
            into v_claimed
            from rowferry.batch_queue as q
            where
                q.status = 'INIT'
                and q.migration_id = v_oldest.migration_id
                and q.queue_name = v_oldest.queue_name
                -- Walk past finished batches only once.
                and (q.run_after, q.id) >= (v_oldest.run_after, v_oldest.id)
                and q.run_after <= statement_timestamp()
            order by q.run_after, q.id
            limit 1
            for update skip locked;
            if found then
                v_starts := v_starts
                || jsonb_build_object(v_oldest.name, jsonb_build_array(v_claimed.run_after, v_claimed.id));
                perform set_config('rowferry.claim_starts', v_starts::text, false);
                perform set_config(
                    'rowferry.claims',
                    concat_ws(
                        ' ', nullif(current_setting('rowferry.claims', true), ''), rowferry.seal_claim(v_claimed.id)
                    ),
                    true
                );
                return query select
                    v_claimed.id,
                    v_claimed.migration_id,
                    v_claimed.revision,
                    v_claimed.queue_name,
                    v_claimed.payload,
                    v_claimed.entry_count,
                    v_claimed.max_attempts,
                    v_claimed.requeues,
                    v_claimed.crashes;
                return;
            end if;
        end loop;

        exit when v_is_fresh;
        v_starts := null;
    end loop;
end;
$$;
