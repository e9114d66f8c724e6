-- rowferry.seal_claim(p_batch_id bigint)
--   Returns the seal of a claim on this batch by the current transaction; only the owner of rowferry's functions can
--   compute it.
--   Writes: nothing. Called by: rowferry.claim_batch, rowferry.check_claim.
create or replace function rowferry.seal_claim(p_batch_id bigint)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select encode(sha256(convert_to(concat_ws(' ', k.key, pg_current_xact_id(), p_batch_id), 'UTF8')), 'hex')
        from rowferry.claim_key as k
    );
end;
$$;
