-- Forgets a multipart upload that is completed, or is about to be aborted. Returns whether this attempt held it: an
-- upload that another attempt has taken over must not be aborted.
-- Writes: upload. Called by: rowferry_worker/multipart/records.py, on the ledger's own connection.
create or replace function rowferry.end_upload(p_attempt_id bigint, p_production text, p_key text)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
-- For the parts as well, which go with it: a session keeps the plan that it made while there were none.
set enable_seqscan = off
as $$
    with ended as (
        delete from rowferry.upload as u
        where u.production = p_production and u.key = p_key and u.attempt_id = p_attempt_id
        returning u.key
    )

    select exists (select from ended);
$$;
