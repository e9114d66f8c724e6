-- Raises object_not_in_prerequisite_state unless the current transaction has claimed this batch and still holds it:
-- a seal that was kept over `rollback to savepoint` does not count, since that gave the lock back.
-- Writes: nothing; a row that was given back, and that no other transaction has locked or finished, is locked anew.
-- Called by: rowferry.fail_batch, rowferry.split_batch, rowferry.add_ranges,
-- rowferry.add_parts, rowferry.hand_on, rowferry.note_folder.
create or replace function rowferry.check_claim(p_batch_id bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    perform from rowferry.batch_queue as q
    where
        q.id = p_batch_id
        and q.status = 'INIT'
        and (select rowferry.seal_claim(k.key, p_batch_id) from rowferry.claim_key as k) = any(
            string_to_array(current_setting('rowferry.claims', true), ' ')
        )
    for update skip locked;
    if found then
        return;
    end if;
    perform rowferry.refuse_claim(p_batch_id);
end;
$$;
