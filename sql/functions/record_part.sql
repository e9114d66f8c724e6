-- rowferry.record_part(p_batch_id bigint, p_attempt_id bigint, p_production text, p_key text, p_upload_id text,
--                      p_number integer, p_etag text, p_digest text)
--   Records a part that the S3 server has confirmed, of an upload whose parts are batches; returns false where that upload
--   has ended. After the last part, the batch of the object is due at once: it completes the upload.
--   Call it on an autocommit connection of its own, so that the part outlives a crash.
--   Raises no_data_found where the attempt is not an open one at this batch.
--   Writes: upload_part, upload (touched_at, once a minute), batch_queue (run_after). Called by: rowferry_worker/multipart/records.py.
create or replace function rowferry.record_part(
    p_batch_id bigint,
    p_attempt_id bigint,
    p_production text,
    p_key text,
    p_upload_id text,
    p_number integer,
    p_etag text,
    p_digest text
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    v_upload rowferry.upload;
begin
    perform from rowferry.batch_attempt as a
    where a.id = p_attempt_id and a.batch_id = p_batch_id and a.finished_at is null;
    if not found then
        raise no_data_found using message = format('attempt %s at batch %s has ended', p_attempt_id, p_batch_id);
    end if;

    -- Of two that record the last two parts, the second sees the part of the first.
    select u.* into v_upload
    from rowferry.upload as u
    where u.production = p_production and u.key = p_key and u.upload_id = p_upload_id
    for no key update;
    if not found then
        return false;
    end if;
    insert into rowferry.upload_part (upload, number, etag, digest)
    values (v_upload.id, p_number, p_etag, p_digest)
    on conflict on constraint upload_part_pkey do update
    set etag = excluded.etag, digest = excluded.digest;
    update rowferry.upload as u
    set touched_at = clock_timestamp()
    where
        u.production = p_production and u.key = p_key and u.touched_at < clock_timestamp() - interval '1 minute';

    if (select count(*) from rowferry.upload_part as p where p.upload = v_upload.id)
        = ceil(v_upload.size_bytes::numeric / v_upload.part_bytes) then
        update rowferry.batch_queue as q
        set run_after = clock_timestamp()
        where
            q.id = (
                select b.id
                from rowferry.batch_queue as b
                where b.id = v_upload.batch_id and b.status = 'INIT' and b.run_after > clock_timestamp()
                for update skip locked
            );
    end if;
    return true;
end;
$$;
