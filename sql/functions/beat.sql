-- rowferry.beat(id text, host text, pid integer, version text, slots integer, parallel integer, queues text[])
--   Says that a worker process lives; the first beat introduces it.
--   Writes: worker. Called by: rowferry_worker/heart.py.
create or replace function rowferry.beat(
    id text, host text, pid integer, version text, slots integer, parallel integer, queues text []
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.worker (id, host, pid, version, slots, parallel, queues)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict on constraint worker_pkey do update
    set last_seen_at = now(), stopped_at = null;
$$;
