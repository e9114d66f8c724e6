-- rowferry.claim_batch(p_queues text[], p_migrations text[], p_passed_over bigint[])
--   Locks the oldest due batch of one of the given queues and returns it; no row when none is free.
--   `p_migrations`: the names of the migrations to serve, null: all; `p_passed_over`: the ids of migrations to skip.
--   Batches of paused migrations and queues are left out. A line is one migration's queue (rowferry.queue; no row: the
--   defaults). Of the lines of the highest priority that have a due batch, one gets the turn by its weight: the claims
--   are numbered, and frac(number * 0.618...) walks through the weights (a golden-ratio sequence, Knuth, The Art of
--   Computer Programming, 6.4), so that of any n claims each line has its share to within a batch or two. Where it
--   has none to give, since others have locked its batches or `max_in_hand` of them are claimed, the others follow in a
--   random order by their weights, then those of lower priority in the same way.
--   `revision` is that of the batch's plan; `payload` is a text, so that what it says is read within the attempt.
--   A session continues where it last claimed a batch: finished batches stay in the index for as long as a transaction
--   can see them. It asks the migrations that had waiting batches when it last looked from the beginning, and newer ones.
--   It looks every 10 seconds, and before it returns no row. Where a look has walked past more than 1,000 batches, a
--   claim in vain looks again only if the tally counts more batches than then (rowferry.may_have_more), or after those
--   10 seconds; after a minute if none waited at all. A batch that returned to the queue is missed for no longer.
--   Writes: nothing; the row lock in the caller's transaction is the lease. The session's setting rowferry.claim_starts
--   says where to continue, unless the transaction is rolled back; the transaction's rowferry.claims what it has claimed.
--   The sequence claim_turn goes on wherever several lines have a due batch.
--   Called by: rowferry_worker/batch/claim.py.
create or replace function rowferry.claim_batch(
    p_queues text [], p_migrations text [] default null, p_passed_over bigint [] default '{}'
)
returns table (
    id bigint,
    migration_id bigint,
    revision integer,
    queue_name text,
    payload text,
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
    v_starts jsonb := nullif(current_setting('rowferry.claim_starts', true), '')::jsonb;
    v_found jsonb;
    v_is_fresh boolean := false;
    v_lines rowferry.due_line [];
    v_line rowferry.due_line;
    v_key uuid;
    v_claimed rowferry.batch_queue;
    v_many constant bigint := 1000;
    v_known_for constant interval := case when v_starts -> 'waiting' = '[]' then '1 minute' else '10 seconds' end;
begin
    if v_starts is null
        or (v_starts ->> 'looked_at')::timestamptz not between
        statement_timestamp() - v_known_for and statement_timestamp()
    then
        v_starts := rowferry.find_oldest(p_queues);
        v_is_fresh := true;
        perform set_config('rowferry.claim_starts', v_starts::text, false);
    end if;

    loop
        v_lines := null;
        -- Nearly always one line is asked for, and it has no limit: then one statement finds its batch and locks it.
        if cardinality(p_queues) = 1 and jsonb_array_length(v_starts -> 'waiting') = 1 then
            select
                q.id,
                m.id,
                m.revision,
                p_queues[1],
                q.payload::text,
                q.entry_count,
                q.max_attempts,
                q.requeues,
                q.crashes,
                case when k.max_in_hand is null then '{}'::rowferry.due_line [] end,
                case
                    when q.id is not null
                        then set_config(
                            'rowferry.claim_starts',
                            jsonb_set(
                                v_starts,
                                array['starts', concat_ws(' ', m.id, p_queues[1])],
                                jsonb_build_array(q.run_after, q.id)
                            )::text,
                            false
                        )
                end,
                case
                    when q.id is not null
                        then set_config(
                            'rowferry.claims',
                            concat_ws(
                                ' ',
                                nullif(current_setting('rowferry.claims', true), ''),
                                rowferry.seal_claim((select c.key from rowferry.claim_key as c), q.id)
                            ),
                            true
                        )
                end
            into
                id, migration_id, revision, queue_name, payload, entry_count, max_attempts, requeues, crashes, v_lines
            from rowferry.migration as m
            left join rowferry.queue as k on m.id = k.migration_id and k.name = p_queues[1]
            left join lateral (
                select
                    b.id,
                    b.run_after,
                    b.payload,
                    b.entry_count,
                    b.max_attempts,
                    b.requeues,
                    b.crashes
                from rowferry.batch_queue as b
                where
                    m.paused_at is null
                    and k.paused_at is null
                    and k.max_in_hand is null
                    and (p_migrations is null or m.name = any(p_migrations))
                    and m.id <> all(p_passed_over)
                    and b.status = 'INIT'
                    and b.migration_id = m.id
                    and b.queue_name = p_queues[1]
                    and (b.run_after, b.id) >= (
                        coalesce(
                            (v_starts -> 'starts' -> concat_ws(' ', m.id, p_queues[1]) ->> 0)::timestamptz, '-infinity'
                        ),
                        coalesce((v_starts -> 'starts' -> concat_ws(' ', m.id, p_queues[1]) ->> 1)::bigint, 0)
                    )
                    and b.run_after <= statement_timestamp()
                order by b.run_after, b.id
                limit 1
                for update skip locked
            ) as q on true
            where
                m.id = (v_starts -> 'waiting' ->> 0)::bigint
                and not exists (
                    select from rowferry.migration as n where n.id > (v_starts ->> 'newest')::bigint
                );
            if id is not null then
                return next;
                return;
            end if;
        end if;

        if v_lines is null then
            select
                coalesce(
                    array_agg(
                        row(
                            m.id, m.revision, u.queue_name, s.name, oldest.run_after, oldest.id, k.id, k.max_in_hand,
                            k.limited_at, coalesce(k.priority, 0), coalesce(k.weight, 1)
                        )::rowferry.due_line
                    ),
                    '{}'
                ),
                (select c.key from rowferry.claim_key as c)
            into strict v_lines, v_key
            from (
                select w.id::bigint as id from jsonb_array_elements_text(v_starts -> 'waiting') as w (id)
                union all
                select n.id from rowferry.migration as n where n.id > (v_starts ->> 'newest')::bigint
            ) as a
            inner join rowferry.migration as m on a.id = m.id
            cross join unnest(p_queues) as u (queue_name)
            cross join lateral (select concat_ws(' ', m.id, u.queue_name) as name) as s
            left join rowferry.queue as k on m.id = k.migration_id and u.queue_name = k.name
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
                        coalesce((v_starts -> 'starts' -> s.name ->> 0)::timestamptz, '-infinity'),
                        coalesce((v_starts -> 'starts' -> s.name ->> 1)::bigint, 0)
                    )
                order by q.run_after, q.id
                limit 1
            ) as oldest
            where
                m.paused_at is null
                and k.paused_at is null
                and (p_migrations is null or m.name = any(p_migrations))
                and m.id <> all(p_passed_over)
                and oldest.run_after <= statement_timestamp();
        end if;

        -- Nearly always there is one.
        if cardinality(v_lines) > 1 then
            -- The weights of a priority side by side: each line lies between `upper` - weight and `upper`.
            with weighed as (
                select
                    l as line,
                    l.priority,
                    l.weight,
                    sum(l.weight) over (partition by l.priority order by l.migration_id, l.queue_name) as upper,
                    sum(l.weight) over (partition by l.priority) as total,
                    count(*) over (partition by l.priority) as lines
                from unnest(v_lines) as l
            )

            select
                array_agg(
                    w.line
                    order by
                        w.priority desc,
                        -- The one in which the turn falls comes first. It is taken once, and only where there is a choice.
                        case
                            when w.lines > 1
                                then ceil((
                                    w.upper - w.total * (
                                        select t.turn - floor(t.turn)
                                        from (
                                            select nextval('rowferry.claim_turn') * 0.6180339887498949::double precision
                                            as turn
                                        ) as t
                                    )
                                ) / w.weight) <> 1
                        end,
                        case when w.lines > 1 then -ln(1 - random()) / w.weight end
                )
            into strict v_lines
            from weighed as w;
        end if;

        foreach v_line in array v_lines loop
            if v_line.max_in_hand is null then
                v_claimed := rowferry.lock_oldest(v_line);
            else
                -- Rolled back as a whole where there is no batch to claim, so that the place is given back.
                begin
                    v_claimed := null;
                    if rowferry.take_place(v_line.queue_id, v_line.max_in_hand, v_line.limited_at) then
                        v_claimed := rowferry.lock_oldest(v_line);
                        if v_claimed.id is null then
                            raise no_data_found;
                        end if;
                    end if;
                exception when no_data_found then
                    v_claimed := null;
                end;
            end if;
            continue when v_claimed.id is null;

            v_starts := jsonb_set(
                v_starts, array['starts', v_line.name], jsonb_build_array(v_claimed.run_after, v_claimed.id)
            );
            perform
                set_config('rowferry.claim_starts', v_starts::text, false),
                set_config(
                    'rowferry.claims',
                    concat_ws(
                        ' ',
                        nullif(current_setting('rowferry.claims', true), ''),
                        rowferry.seal_claim(v_key, v_claimed.id)
                    ),
                    true
                );
            id := v_claimed.id;
            migration_id := v_claimed.migration_id;
            revision := v_line.revision;
            queue_name := v_claimed.queue_name;
            payload := v_claimed.payload::text;
            entry_count := v_claimed.entry_count;
            max_attempts := v_claimed.max_attempts;
            requeues := v_claimed.requeues;
            crashes := v_claimed.crashes;
            return next;
            return;
        end loop;

        exit when v_is_fresh
        or ((v_starts ->> 'walked')::bigint > v_many and not rowferry.may_have_more(v_starts, p_queues));
        -- All that is due from the starts on has just been tried: only what is before them is worth another look.
        v_found := rowferry.find_oldest(p_queues);
        perform set_config('rowferry.claim_starts', v_found::text, false);
        exit when v_found -> 'waiting' <@ (v_starts -> 'waiting') and not exists (
            select
            from jsonb_each(v_found -> 'starts') as f
            where
                ((f.value ->> 0)::timestamptz, (f.value ->> 1)::bigint)
                < ((v_starts -> 'starts' -> f.key ->> 0)::timestamptz, (v_starts -> 'starts' -> f.key ->> 1)::bigint)
        );
        v_starts := v_found;
        v_is_fresh := true;
    end loop;
end;
$$;
