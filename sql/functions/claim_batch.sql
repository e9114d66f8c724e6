-- Locks the oldest due batch of the first of these lines (one migration's queue each) that has one to give, and returns
-- it; no row where none has: it is paused, `max_claimed` of its batches are claimed, or others have locked all that is
-- due. The four arrays are parallel: `p_since` and `p_since_ids` are the `run_after` and `id` from which on to look, as
-- rowferry.find_oldest or the claim before returned them, so that no claim walks past finished batches; null: from the
-- beginning. The order of the lines is the caller's (rowferry_worker/waiting_lines.py). `revision` is that of the plan;
-- `payload` is a text, so that what it says is read within the attempt; `since` is its run_after as a text in ISO.
-- Writes: nothing; the row lock in the caller's transaction is the lease. The transaction's setting rowferry.claims
-- says what it has claimed, by seals. Called by: rowferry_worker/batch/claim.py.
create or replace function rowferry.claim_batch(
    p_migration_ids bigint [],
    p_queue_names text [],
    p_since timestamptz [] default null,
    p_since_ids bigint [] default null
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
    crashes integer,
    since text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
-- The session keeps its plan, so the plan must not come from a moment when the queue was empty or not yet analysed:
-- batch_queue_due_idx is always right.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
    v_line record;
    v_claimed rowferry.batch_queue;
begin
    for v_line in
        select
            m.id,
            m.revision,
            l.queue_name,
            coalesce(l.since, '-infinity') as since,
            coalesce(l.since_id, 0) as since_id,
            k.id as queue_id,
            k.max_claimed
        from unnest(p_migration_ids, p_queue_names, p_since, p_since_ids) with ordinality
            as l (migration_id, queue_name, since, since_id, place)
        inner join rowferry.migration as m on l.migration_id = m.id
        left join rowferry.queue as k on l.migration_id = k.migration_id and l.queue_name = k.name
        where m.paused_at is null and k.paused_at is null
        order by l.place
    loop
        if v_line.max_claimed is null then
            v_claimed := rowferry.lock_oldest(v_line.id, v_line.queue_name, v_line.since, v_line.since_id);
        else
            -- Rolled back as a whole where there is no batch to claim, so that the place is given back.
            begin
                v_claimed := null;
                if rowferry.take_place(v_line.queue_id, v_line.max_claimed) then
                    v_claimed := rowferry.lock_oldest(v_line.id, v_line.queue_name, v_line.since, v_line.since_id);
                    if v_claimed.id is null then
                        raise no_data_found;
                    end if;
                end if;
            exception when no_data_found then
                v_claimed := null;
            end;
        end if;
        continue when v_claimed.id is null;

        perform set_config(
            'rowferry.claims',
            concat_ws(
                ' ',
                nullif(current_setting('rowferry.claims', true), ''),
                (select rowferry.seal_claim(c.key, v_claimed.id) from rowferry.claim_key as c)
            ),
            true
        );
        return query select
            v_claimed.id,
            v_line.id,
            v_line.revision,
            v_line.queue_name,
            v_claimed.payload::text,
            v_claimed.entry_count,
            v_claimed.max_attempts,
            v_claimed.requeues,
            v_claimed.crashes,
            v_claimed.run_after::text;
        return;
    end loop;
end;
$$;
