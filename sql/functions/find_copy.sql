-- Returns what is remembered of a production object that was copied; no row: nothing. `noted_for`: how long ago.
-- Writes: nothing. Called by: rowferry_worker/objects/own_copies.py, on the ledger's own connection.
create or replace function rowferry.find_copy(p_production text, p_key text)
returns table (
    legacy text,
    legacy_key text,
    source_etag text,
    size_bytes bigint,
    part_bytes bigint,
    etag text,
    noted_for interval,
    is_pending boolean,
    digests bytea
)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select
        c.legacy,
        c.legacy_key,
        c.source_etag,
        c.size_bytes,
        c.part_bytes,
        c.etag,
        clock_timestamp() - c.copied_at,
        c.is_pending,
        c.digests
    from rowferry.copied_object as c
    where c.production = p_production and c.key = p_key;
$$;
