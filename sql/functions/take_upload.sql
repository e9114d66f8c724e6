-- Gives the multipart upload to a production key to an attempt, and returns what an earlier attempt has recorded of it;
-- `upload_id` is null where there is nothing to continue. `is_held` is false, and nothing is taken, while an open
-- attempt at another claimed batch holds it, or while that of another legacy object was worked on in the last ten
-- minutes and its batch waits to go on: two that abort each other's uploads would never end. The caller waits then.
-- Call it on an autocommit connection of its own, so that the record outlives a crash.
-- Raises no_data_found where the attempt is not an open one at this batch.
-- Writes: upload. Called by: rowferry_worker/multipart/records.py.
create or replace function rowferry.take_upload(
    p_batch_id bigint, p_attempt_id bigint, p_production text, p_key text, p_legacy text, p_legacy_key text
)
returns table (
    is_held boolean,
    upload_id text,
    legacy text,
    legacy_key text,
    source_etag text,
    size_bytes bigint,
    part_bytes bigint,
    parts jsonb
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_migration_id bigint;
    v_upload rowferry.upload;
    v_holder bigint;
begin
    select q.migration_id into strict v_migration_id
    from rowferry.batch_queue as q
    inner join rowferry.batch_attempt as a on q.id = a.batch_id
    where q.id = p_batch_id and a.id = p_attempt_id and a.finished_at is null;

    insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id)
    values (p_production, p_key, v_migration_id, p_batch_id, p_attempt_id)
    on conflict on constraint upload_pkey do nothing;

    select u.* into strict v_upload
    from rowferry.upload as u
    where u.production = p_production and u.key = p_key
    for update;

    -- The claim of the other batch locks its row. `batch_id` may name a batch that was split from it since.
    select a.batch_id into v_holder
    from rowferry.batch_attempt as a
    where a.id = v_upload.attempt_id and a.batch_id <> p_batch_id and a.finished_at is null;
    if found then
        perform from rowferry.batch_queue as q where q.id = v_holder for key share skip locked;
        if not found and exists (select from rowferry.batch_queue as q where q.id = v_holder) then
            is_held := false;
            return next;
            return;
        end if;
    end if;

    if (v_upload.legacy, v_upload.legacy_key) <> (p_legacy, p_legacy_key)
        and v_upload.batch_id <> p_batch_id
        and v_upload.touched_at > clock_timestamp() - interval '10 minutes' then
        perform from rowferry.batch_queue as q where q.id = v_upload.batch_id and q.status = 'INIT';
        if found then
            is_held := false;
            return next;
            return;
        end if;
    end if;

    update rowferry.upload as u
    set
        migration_id = v_migration_id,
        batch_id = p_batch_id,
        attempt_id = p_attempt_id,
        touched_at = clock_timestamp()
    where u.production = p_production and u.key = p_key;
    return query select
        true, v_upload.upload_id, v_upload.legacy, v_upload.legacy_key, v_upload.source_etag, v_upload.size_bytes,
        v_upload.part_bytes, coalesce((
            select jsonb_object_agg(p.number, p.etag)
            from rowferry.upload_part as p
            where p.upload = v_upload.id
        ), '{}');
end;
$$;
