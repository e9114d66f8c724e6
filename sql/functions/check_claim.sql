-- rowferry.check_claim(p_batch_id bigint)
--   Raises object_not_in_prerequisite_state unless the current transaction has claimed this batch and so holds it.
--   Writes: nothing. Called by: rowferry.finish_batch, rowferry.fail_batch, rowferry.split_batch,
--   rowferry.add_ranges, rowferry.hand_on.
create or replace function rowferry.check_claim(p_batch_id bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not coalesce(
        rowferry.seal_claim(p_batch_id) = any(string_to_array(current_setting('rowferry.claims', true), ' ')), false
    ) then
        raise object_not_in_prerequisite_state using
        message = format('batch %s is not claimed by this transaction', p_batch_id);
    end if;
end;
$$;
