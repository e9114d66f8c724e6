-- rowferry.heartbeat(id text, host text, pid integer, version text, slots integer, parallel integer, queues text[])
--   Says that a worker process lives; the first one introduces it. Returns how many live workers there are, this one
--   included, and how far the slowest streaming replica is behind: null where there is none, or where the owner of
--   this function may not know (it needs pg_monitor).
--   Writes: worker. Called by: rowferry_worker/monitoring/heartbeat.py.
create or replace function rowferry.heartbeat(
    id text, host text, pid integer, version text, slots integer, parallel integer, queues text []
)
returns table (fleet_size integer, replica_lag interval)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.worker (id, host, pid, version, slots, parallel, queues)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict on constraint worker_pkey do update
    set last_seen_at = now(), stopped_at = null;

    select
        (
            select count(*)
            from rowferry.worker as w
            where w.stopped_at is null and w.last_seen_at > now() - interval '30 seconds'
        )::integer as fleet_size,
        (select max(r.replay_lag) from pg_stat_replication as r) as replica_lag;
$$;
