-- Raises object_not_in_prerequisite_state for a batch that the current transaction has not claimed, and says so where
-- no claim can be sealed: rowferry.claim_key is empty, as in a database that was restored without the rows of rowferry.
-- Writes: nothing. Called by: rowferry.check_claim, rowferry.finish_batch.
create or replace function rowferry.refuse_claim(p_batch_id bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (select from rowferry.claim_key) then
        raise object_not_in_prerequisite_state using
        message = 'rowferry.claim_key is empty: run `rowferry init`';
    end if;
    raise object_not_in_prerequisite_state using
    message = format('batch %s is not claimed by this transaction', p_batch_id);
end;
$$;
