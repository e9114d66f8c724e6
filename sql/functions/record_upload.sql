-- Records what the next attempt needs to go on with a multipart upload, before its first part is sent. Returns whether
-- this attempt holds the upload; otherwise nothing is recorded.
-- Writes: upload, upload_part. Called by: rowferry_worker/multipart/records.py, on the ledger's own connection.
create or replace function rowferry.record_upload(
    p_attempt_id bigint,
    p_production text,
    p_key text,
    p_upload_id text,
    p_legacy text,
    p_legacy_key text,
    p_source_etag text,
    p_size_bytes bigint,
    p_part_bytes bigint
)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with recorded as (
        update rowferry.upload as u
        set
            upload_id = p_upload_id,
            legacy = p_legacy,
            legacy_key = p_legacy_key,
            source_etag = p_source_etag,
            size_bytes = p_size_bytes,
            part_bytes = p_part_bytes,
            begun_at = clock_timestamp(),
            touched_at = clock_timestamp()
        where u.production = p_production and u.key = p_key and u.attempt_id = p_attempt_id
        returning u.id
    ),

    cleared as (
        delete from rowferry.upload_part as p
        using recorded as r
        where p.upload = r.id
    )

    select exists (select from recorded);
$$;
