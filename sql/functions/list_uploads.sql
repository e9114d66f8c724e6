-- Returns those of the production keys that have an upload recorded: the legacy object, and the numbers of the parts
-- that are recorded. `is_awaited`: it lacks parts that batches of the claimed batch's queue are to send, so that there
-- is nothing to do for it yet.
-- Writes: nothing. Called by: rowferry_queues/parts/perform.py, rowferry_queues/parts/send.py, in the transaction of
-- the claim.
create or replace function rowferry.list_uploads(p_batch_id bigint, p_production text, p_keys text [])
returns table (
    key text,
    upload_id text,
    legacy_key text,
    source_etag text,
    size_bytes bigint,
    part_bytes bigint,
    recorded integer [],
    is_awaited boolean
)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
    select rowferry.check_claim(p_batch_id);

    select
        u.key,
        u.upload_id,
        u.legacy_key,
        split_part(u.source_etag, ' ', 1),
        u.size_bytes,
        u.part_bytes,
        s.recorded,
        cardinality(s.recorded) < ceil(u.size_bytes::numeric / u.part_bytes)
        and exists (
            select from rowferry.batch_queue as q
            where
                q.status = 'INIT'
                and q.payload ? 'upload'
                and q.payload -> 'upload' ->> 'key' = u.key
                and q.payload -> 'upload' ->> 'production' = u.production
                and q.payload -> 'upload' ->> 'id' = u.upload_id
                and q.migration_id = own.migration_id
                and q.queue_name = own.queue_name
        )
    from rowferry.batch_queue as own
    cross join rowferry.upload as u
    -- Read once: offset 0 keeps the planner from doing so in each place.
    cross join lateral (
        select array(
            select p.number
            from rowferry.upload_part as p
            where p.upload = u.id
        ) as recorded
        offset 0
    ) as s
    where
        own.id = p_batch_id
        and u.production = p_production
        and u.key = any(p_keys)
        and u.upload_id is not null;
$$;
