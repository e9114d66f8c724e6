-- Returns those of the production keys that have an upload recorded: the legacy object, and the numbers of the parts
-- that are recorded.
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
    recorded integer []
)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select rowferry.check_claim(p_batch_id);

    select
        u.key,
        u.upload_id,
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
    where u.production = p_production and u.key = any(p_keys) and u.upload_id is not null;
$$;
