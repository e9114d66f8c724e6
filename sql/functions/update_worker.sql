-- Records what a worker process says of itself beside its heartbeats; what `p_changes` leaves out stays as it is.
-- `in_hand`: {"attempt": entries}, how many entries it has settled so far in each batch that it has claimed: their
-- objects stand, their rows and the verdict are still to be written. It says so once a second while that changes.
-- `unusable`: {"migration" or "migration queue": reason}, why it cannot work on a migration, by its id, or on one queue
-- of it: wrong credentials, a bucket that is gone, a queue that is not installed; null: it can again.
-- `stopped`: it has stopped in good order.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: worker, one row. Where it says what is `in_hand`, no COMMIT waits for the disk: that is said again.
-- Called by: rowferry_worker/monitoring/heartbeat.py, rowferry_worker/batch/run.py.
create or replace function rowferry.update_worker(p_id text, p_changes jsonb)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(p_id);
    select set_config('synchronous_commit', 'off', true) where p_changes ? 'in_hand';

    update rowferry.worker as w
    set
        last_seen_at = now(),
        reported_at = case when p_changes ? 'in_hand' then now() else w.reported_at end,
        in_hand = case
            when p_changes ? 'in_hand' then (
                select coalesce(jsonb_object_agg(e.key, e.value::integer), '{}')
                from jsonb_each_text(p_changes -> 'in_hand') as e
            )
            else w.in_hand
        end,
        unusable = jsonb_strip_nulls(w.unusable || (
            select coalesce(jsonb_object_agg(e.key, e.value), '{}')
            from jsonb_each_text(p_changes -> 'unusable') as e
        )),
        stopped_at = case when p_changes ? 'stopped' then now() end
    where w.id = p_id and w.stopped_at is null;
$$;
