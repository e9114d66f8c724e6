-- Remembers the object that a completed upload has become, `p_etag` being its ETag, with the ETags of its parts where
-- they can be digests, and forgets the upload. Returns whether this attempt held the upload; otherwise nothing is
-- recorded.
-- Writes: copied_object, upload, upload_part. Called by: rowferry_queues/parts/large_copy.py, on the ledger's own
-- connection.
create or replace function rowferry.record_copy(
    p_attempt_id bigint, p_production text, p_key text, p_upload_id text, p_etag text
)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    insert into rowferry.copied_object (
        production, key, legacy, legacy_key, source_etag, size_bytes, part_bytes, etag, digests
    )
    select
        u.production,
        u.key,
        u.legacy,
        u.legacy_key,
        split_part(u.source_etag, ' ', 1),
        u.size_bytes,
        u.part_bytes,
        p_etag,
        (
            select
                case
                    when count(*) = ceil(u.size_bytes::numeric / u.part_bytes)
                        then string_agg(decode(p.etag, 'hex'), '' order by p.number)
                end
            from rowferry.upload_part as p
            where p.upload = u.id and p.etag ~ '^[0-9a-f]{32}$'
        )
    from rowferry.upload as u
    where
        u.production = p_production and u.key = p_key and u.attempt_id = p_attempt_id and u.upload_id = p_upload_id
    on conflict on constraint copied_object_pkey do update
    set
        legacy = excluded.legacy,
        legacy_key = excluded.legacy_key,
        source_etag = excluded.source_etag,
        size_bytes = excluded.size_bytes,
        part_bytes = excluded.part_bytes,
        etag = excluded.etag,
        digests = excluded.digests,
        copied_at = excluded.copied_at,
        is_pending = false;

    select rowferry.end_upload(p_attempt_id, p_production, p_key);
$$;
