-- rowferry.find_upload(p_production text, p_key text, p_upload_id text)
--   Returns what a batch of parts needs to know of its upload: the legacy object, the numbers of the parts that are
--   recorded, and the copy that it replaces, if rowferry.copied_object has one with parts of that size. No row: the
--   upload has ended.
--   Writes: nothing. Called by: rowferry_queues/parts/send.py.
create or replace function rowferry.find_upload(p_production text, p_key text, p_upload_id text)
returns table (
    legacy_key text,
    source_etag text,
    size_bytes bigint,
    part_bytes bigint,
    recorded integer [],
    old_etag text,
    old_size_bytes bigint,
    old_digests bytea
)
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
        ),
        c.etag,
        c.size_bytes,
        c.digests
    from rowferry.upload as u
    left join rowferry.copied_object as c
        on
            u.production = c.production
            and u.key = c.key
            and u.legacy = c.legacy
            and u.legacy_key = c.legacy_key
            and u.part_bytes = c.part_bytes
    where u.production = p_production and u.key = p_key and u.upload_id = p_upload_id;
$$;
