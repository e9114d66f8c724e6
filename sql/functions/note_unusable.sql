-- Records why a worker cannot work on a migration, or on one queue of it (null: on none): wrong credentials, a bucket
-- that is gone, a queue that is not installed. A null `p_error`: it can again.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: worker. Called by: rowferry_worker/batch/run.py.
create or replace function rowferry.note_unusable(
    p_id text, p_migration_id bigint, p_queue_name text, p_error text
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_key constant text := concat_ws(' ', p_migration_id, p_queue_name);
begin
    perform rowferry.check_worker(p_id);
    update rowferry.worker as w
    set unusable = case
        when p_error is null then w.unusable - v_key
        else w.unusable || jsonb_build_object(v_key, p_error)
    end
    where w.id = p_id and w.stopped_at is null;
end;
$$;
