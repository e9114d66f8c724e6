-- Notes in the payload of a claimed batch (`folder`) how far its attempts have come in the folder of one entry
-- (rowferry_queues/folders.py), so that the next attempt continues there.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch.
-- Writes: batch_queue. Called by: rowferry_queues/folders.py, in the transaction of the claim.
create or replace function rowferry.note_folder(p_batch_id bigint, p_folder jsonb)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_claim(p_batch_id);

    update rowferry.batch_queue as q
    set payload = q.payload || jsonb_build_object('folder', p_folder)
    where q.id = p_batch_id;
$$;
