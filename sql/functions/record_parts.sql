-- rowferry.record_parts(p_attempt_id bigint, p_production text, p_key text, p_upload_id text, p_parts jsonb)
--   Adds parts that the S3 server has confirmed to the record of a multipart upload: their ETags by their numbers.
--   Returns whether this attempt holds that upload; otherwise nothing is recorded.
--   Writes: upload. Called by: rowferry_worker/multipart/records.py, on the ledger's own connection.
create or replace function rowferry.record_parts(
    p_attempt_id bigint, p_production text, p_key text, p_upload_id text, p_parts jsonb
)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    with recorded as (
        update rowferry.upload as u
        set
            parts = u.parts || p_parts,
            sent_bytes = least(
                u.size_bytes, u.part_bytes * (select count(*) from jsonb_object_keys(u.parts || p_parts))
            ),
            touched_at = clock_timestamp()
        where
            u.production = p_production
            and u.key = p_key
            and u.attempt_id = p_attempt_id
            and u.upload_id = p_upload_id
        returning u.key
    )

    select exists (select from recorded);
$$;
