-- Remembers a production object that was copied in one piece, while an application may be about to write there as
-- well: a later attempt then knows by its ETag that it is a copy.
-- Writes: copied_object. Called by: rowferry_worker/objects/own_copies.py, on the ledger's own connection.
create or replace function rowferry.note_copy(
    p_production text, p_key text, p_legacy text, p_legacy_key text, p_source_etag text, p_etag text
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    insert into rowferry.copied_object (
        production, key, legacy, legacy_key, source_etag, size_bytes, part_bytes, etag
    )
    values (p_production, p_key, p_legacy, p_legacy_key, p_source_etag, 0, 0, p_etag)
    on conflict on constraint copied_object_pkey do update
    set
        legacy = excluded.legacy,
        legacy_key = excluded.legacy_key,
        source_etag = excluded.source_etag,
        size_bytes = excluded.size_bytes,
        part_bytes = excluded.part_bytes,
        etag = excluded.etag,
        digests = null,
        copied_at = excluded.copied_at,
        is_pending = false;
$$;
