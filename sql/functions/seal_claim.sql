-- Returns the seal of a claim on this batch by the current transaction, made with the key of rowferry.claim_key, which
-- only the owner of rowferry's functions can read. In SQL, so that it becomes part of its callers' statements.
-- Writes: nothing. Called by: rowferry.claim_batch, rowferry.check_claim, rowferry.finish_batch.
create or replace function rowferry.seal_claim(p_key uuid, p_batch_id bigint)
returns text
language sql
stable
as $$
    select encode(sha256(convert_to(concat_ws(' ', p_key, pg_current_xact_id(), p_batch_id), 'UTF8')), 'hex');
$$;
