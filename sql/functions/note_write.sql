-- Remembers that a production object is about to be written, while an application may be about to write there as well:
-- should nobody learn how that ends, what stands there is not taken for the application's. Without `p_is_pending`:
-- nothing was written.
-- Writes: copied_object. Called by: rowferry_worker/objects/own_copies.py, on the ledger's own connection.
create or replace function rowferry.note_write(
    p_production text, p_key text, p_legacy text, p_legacy_key text, p_is_pending boolean
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    insert into rowferry.copied_object (
        production, key, legacy, legacy_key, source_etag, size_bytes, part_bytes, etag, is_pending
    )
    values (p_production, p_key, p_legacy, p_legacy_key, '', 0, 0, '', p_is_pending)
    on conflict on constraint copied_object_pkey do update
    set is_pending = excluded.is_pending;
$$;
