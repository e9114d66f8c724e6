-- Puts parts of a recorded upload in the queue of the claimed batch, `p_size` of them in a batch, unless batches of
-- that upload are there already. Returns how many of these are INIT and how many in ERROR; they appear with the verdict
-- on the claimed batch, which waits for them: rowferry.record_parts makes it due after the last one.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch, no_data_found where the
-- upload is not recorded.
-- Writes: batch_queue, upload. Called by: rowferry_queues/parts/perform.py, in the transaction of the claim.
create or replace function rowferry.add_parts(
    p_batch_id bigint, p_production text, p_key text, p_upload_id text, p_numbers integer [], p_size integer
)
returns table (waiting bigint, failed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_own rowferry.batch_queue;
    v_upload constant jsonb := jsonb_build_object('production', p_production, 'key', p_key, 'id', p_upload_id);
begin
    perform rowferry.check_claim(p_batch_id);
    select q.* into strict v_own from rowferry.batch_queue as q where q.id = p_batch_id;
    perform from rowferry.upload as u
    where u.production = p_production and u.key = p_key and u.upload_id = p_upload_id
    for update;
    if not found then
        raise no_data_found using message = format('the upload to "%s" is not recorded', p_key);
    end if;
    update rowferry.upload as u
    set batch_id = p_batch_id
    where u.production = p_production and u.key = p_key;

    select
        count(*) filter (where q.status = 'INIT'),
        count(*) filter (where q.status = 'ERROR')
    into strict waiting, failed
    from rowferry.batch_queue as q
    where
        q.status in ('INIT', 'ERROR')
        and q.payload ? 'upload'
        and q.payload -> 'upload' ->> 'key' = p_key
        and q.payload -> 'upload' = v_upload
        and q.migration_id = v_own.migration_id
        and q.queue_name = v_own.queue_name;
    if waiting + failed = 0 then
        insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after)
        select
            v_own.migration_id,
            v_own.queue_name,
            jsonb_build_object(
                'entries', format('parts of %s', v_own.payload ->> 'entries'),
                'items', jsonb_agg(
                    jsonb_build_object('id', n.number::text, 'key', format('%s, part %s', p_key, n.number))
                    order by n.number
                ),
                'unsettled', null,
                'upload', v_upload
            ),
            count(*),
            v_own.max_attempts,
            clock_timestamp()
        from (
            select
                u.number,
                (row_number() over (order by u.number) - 1) / p_size as batch
            from unnest(p_numbers) as u (number)
        ) as n
        group by n.batch
        order by n.batch;
        get diagnostics waiting = row_count;
    end if;
    return next;
end;
$$;
