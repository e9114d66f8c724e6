-- Records how many entries a worker has settled so far in each batch that it has claimed, by attempt: their objects
-- stand, their rows and the verdict are still to be written. The arrays are parallel; an attempt that is left out has
-- none. A worker calls it once a second while these numbers change; it is a sign of life as well.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: worker, one row. No COMMIT waits for the disk: what a crash of the server loses is reported again.
-- Called by: rowferry_worker/monitoring/heartbeat.py.
create or replace function rowferry.report_progress(p_id text, p_attempt_ids bigint [], p_entries integer [])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform rowferry.check_worker(p_id);
    perform set_config('synchronous_commit', 'off', true);

    update rowferry.worker as w
    set
        last_seen_at = now(),
        reported_at = now(),
        in_hand = (
            select coalesce(jsonb_object_agg(u.attempt_id, u.entries), '{}')
            from unnest(p_attempt_ids, p_entries) as u (attempt_id, entries)
            where u.attempt_id is not null and u.entries > 0
        )
    where w.id = p_id and w.stopped_at is null;
end;
$$;
