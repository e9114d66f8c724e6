-- Returns what a batch of parts needs to know of its upload: the legacy object, and the numbers of the parts that are
-- recorded. No row: the upload has ended.
-- Writes: nothing. Called by: rowferry_queues/parts/send.py.
create or replace function rowferry.find_upload(p_production text, p_key text, p_upload_id text)
returns table (legacy_key text, source_etag text, size_bytes bigint, part_bytes bigint, recorded integer [])
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select
        u.legacy_key,
        split_part(u.source_etag, ' ', 1),
        u.size_bytes,
        u.part_bytes,
        array(
            select p.number
            from rowferry.upload_part as p
            where p.upload = u.id
        )
    from rowferry.upload as u
    where u.production = p_production and u.key = p_key and u.upload_id = p_upload_id;
$$;
