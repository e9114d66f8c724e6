-- Records that a worker process has stopped in good order.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: worker. Called by: rowferry_worker/monitoring/heartbeat.py.
create or replace function rowferry.deregister_worker(p_id text)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(p_id);

    update rowferry.worker as w set stopped_at = now(), last_seen_at = now() where w.id = p_id;
$$;
