-- rowferry.heartbeat(p_id text, p_host text, p_pid integer, p_version text, p_slots integer, p_parallel integer,
--                    p_queues text[])
--   Records that a worker process lives; the first heartbeat registers it. Returns the number of live workers, this one
--   included, and the lag of the slowest streaming replica: null where there is none, or where the owner of this
--   function may not see it (it needs pg_monitor).
--   Writes: worker. Called by: rowferry_worker/monitoring/heartbeat.py.
create or replace function rowferry.heartbeat(
    p_id text, p_host text, p_pid integer, p_version text, p_slots integer, p_parallel integer, p_queues text []
)
returns table (live_workers integer, replica_lag interval)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.worker (id, host, pid, version, slots, parallel, queues)
    values (p_id, p_host, p_pid, p_version, p_slots, p_parallel, p_queues)
    on conflict on constraint worker_pkey do update
    set last_seen_at = now(), stopped_at = null;

    select
        (
            select count(*)
            from rowferry.worker as w
            where w.stopped_at is null and w.last_seen_at > now() - interval '30 seconds'
        )::integer as live_workers,
        (select max(r.replay_lag) from pg_stat_replication as r) as replica_lag;
$$;
