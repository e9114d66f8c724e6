-- Notes in the payload of a claimed batch (`folder`) how far its attempts have come in the folder of one entry: up to
-- and with an object's key. `p_since`: when the first of them began, by the legacy server's clock, null where that is
-- unknown; `p_objects` and `p_bytes`: what they have written. The next attempt continues behind the key.
-- Raises object_not_in_prerequisite_state where this transaction has not claimed the batch.
-- Writes: batch_queue. Called by: rowferry_queues/folders.py, in the transaction of the claim.
create or replace function rowferry.note_folder(
    p_batch_id bigint, p_entry_id text, p_key text, p_since timestamptz, p_objects bigint, p_bytes bigint
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_claim(p_batch_id);

    update rowferry.batch_queue as q
    set
        payload = q.payload || jsonb_build_object(
            'folder',
            jsonb_build_object(
                'id', p_entry_id,
                'key', p_key,
                'since', extract(epoch from p_since),
                'objects', p_objects,
                'bytes', p_bytes
            )
        )
    where q.id = p_batch_id;
$$;
