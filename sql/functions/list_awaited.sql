-- rowferry.list_awaited(p_batch_id bigint, p_production text, p_keys text[])
--   Returns those of the production keys whose uploads lack parts that batches of the claimed batch's queue are to send:
--   there is nothing to do for them yet.
--   Writes: nothing. Called by: rowferry_queues/parts/objects.py, in the transaction of the claim.
create or replace function rowferry.list_awaited(p_batch_id bigint, p_production text, p_keys text [])
returns table (key text)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select rowferry.check_claim(p_batch_id);

    select distinct u.key
    from rowferry.batch_queue as own
    inner join rowferry.batch_queue as q
        on own.migration_id = q.migration_id and own.queue_name = q.queue_name and q.status = 'INIT'
    inner join rowferry.upload as u
        on
            q.payload -> 'upload' ->> 'production' = u.production
            and q.payload -> 'upload' ->> 'key' = u.key
            and q.payload -> 'upload' ->> 'id' = u.upload_id
    where
        own.id = p_batch_id
        and u.production = p_production
        and u.key = any(p_keys)
        and (
            select count(*)
            from rowferry.upload_part as p
            where p.upload = u.id
        ) < ceil(u.size_bytes::numeric / u.part_bytes);
$$;
