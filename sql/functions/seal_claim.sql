-- rowferry.seal_claim(batch_id bigint)
--   Returns the seal of a claim on this batch by the current transaction, which nobody else can make.
--   Writes: nothing. Called by: rowferry.claim_batch, rowferry.check_claim.
create or replace function rowferry.seal_claim(batch_id bigint)
returns text
language sql
set search_path = pg_catalog, pg_temp
as $$
    select encode(sha256(convert_to(concat_ws(' ', k.key, pg_current_xact_id(), $1), 'UTF8')), 'hex')
    from rowferry.claim_key as k;
$$;
