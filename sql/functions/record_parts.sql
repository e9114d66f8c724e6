-- Records parts of a multipart upload that the S3 server has confirmed: their ETags by their numbers. Returns whether
-- the attempt may do so, since it holds that upload, or is open at a batch of its parts; otherwise nothing is
-- recorded. After the last part, a batch that waits for the upload is due at once: it completes it.
-- Call it on an autocommit connection of its own, so that the parts outlive a crash.
-- Writes: upload_part, upload, batch_queue (run_after). Called by: rowferry_worker/multipart/records.py.
create or replace function rowferry.record_parts(
    p_attempt_id bigint, p_production text, p_key text, p_upload_id text, p_parts jsonb
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_upload rowferry.upload;
begin
    -- Of two that record the last two parts, the second sees the part of the first.
    update rowferry.upload as u
    set touched_at = clock_timestamp()
    where
        u.production = p_production and u.key = p_key and u.upload_id = p_upload_id
        and (
            u.attempt_id = p_attempt_id
            or exists (
                select from rowferry.batch_attempt as a
                inner join rowferry.batch_queue as q on a.batch_id = q.id
                where
                    a.id = p_attempt_id and a.finished_at is null
                    and q.payload -> 'upload' ->> 'key' = p_key and q.payload -> 'upload' ->> 'id' = p_upload_id
            )
        )
    returning u.* into v_upload;
    if not found then
        return false;
    end if;
    insert into rowferry.upload_part (upload, number, etag)
    select v_upload.id, p.key::integer, p.value from jsonb_each_text(p_parts) as p
    on conflict on constraint upload_part_pkey do update
    set etag = excluded.etag;

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
