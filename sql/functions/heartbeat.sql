-- Records that a worker process lives, the batches that it has claimed, how many objects it may have in flight, and the
-- requests a second that it gets through where a server refuses more: {"endpoint/bucket operation": rate}. The first
-- one registers it. `p_process`: its kernel, namespaces, id and start (rowferry_worker/monitoring/kernel.py).
-- `p_waits_for`: what PostgreSQL says to a process that gets no connection for a batch; null: it has one, or needs
-- none. Returns
-- `live_workers`: the number of live workers;
-- `replica_lag`: of the slowest streaming replica; null: there is none, or the function's owner lacks pg_monitor;
-- `connections`: how many all workers may take together (rowferry.share_connections);
-- `fleet_rates`: by key, the sum of the live workers' rates: {"endpoint/bucket operation": {"per_second", "workers"}}.
-- One heartbeat sums up all workers for the others, the more seldom the more there are: of 1,000 workers, every 5 s.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker).
-- Writes: worker, fleet. Called by: rowferry_worker/monitoring/heartbeat.py.
create or replace function rowferry.heartbeat(
    p_id text,
    p_host text,
    p_pid integer,
    p_version text,
    p_batches integer,
    p_in_flight_limit integer,
    p_queues text [],
    p_request_rates jsonb default '{}',
    p_process text default null,
    p_waits_for text default null
)
returns table (live_workers integer, replica_lag interval, connections integer, fleet_rates jsonb)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select rowferry.check_worker(p_id);

    insert into rowferry.worker
    (id, host, pid, process, version, batches, in_flight_limit, queues, request_rates, waits_for)
    select
        p_id,
        p_host,
        p_pid,
        p_process,
        p_version,
        p_batches,
        p_in_flight_limit,
        p_queues,
        p_request_rates,
        case
            when p_waits_for like '%for role "%' then format('role %s has a limit of %s', r.rolname, r.rolconnlimit)
            when p_waits_for like '%for database "%'
                then format('database %s has a limit of %s', d.datname, d.datconnlimit)
            else p_waits_for
        end
    from pg_roles as r
    cross join pg_database as d
    where r.rolname = session_user and d.datname = current_database()
    on conflict on constraint worker_pkey do update
    set
        batches = excluded.batches,
        in_flight_limit = excluded.in_flight_limit,
        request_rates = excluded.request_rates,
        waits_for = excluded.waits_for,
        last_seen_at = now(),
        stopped_at = null;

    insert into rowferry.fleet (is_only)
    select true
    where not exists (select from rowferry.fleet)
    on conflict do nothing;

    with due as (
        select f.is_only
        from rowferry.fleet as f
        where
            f.summed_at not between
            clock_timestamp() - greatest(f.live_workers - 10, 0) * interval '5 ms' and clock_timestamp()
        for update skip locked
    )

    update rowferry.fleet as f
    set (live_workers, request_rates, summed_at) = (
        with live as (
            select w.request_rates
            from rowferry.worker as w
            where w.stopped_at is null and w.last_seen_at > now() - interval '30 seconds'
        ),

        rates as (
            select
                r.key,
                sum(r.value::numeric) as per_second,
                count(*) as workers
            from live as l
            cross join jsonb_each(l.request_rates) as r (key, value)
            group by r.key
        )

        select
            (select count(*) from live as l),
            (
                select
                    coalesce(
                        jsonb_object_agg(
                            r.key, jsonb_build_object('per_second', r.per_second, 'workers', r.workers)
                        ), '{}'
                    )
                from rates as r
            ),
            clock_timestamp()
    )
    from due
    where f.is_only = due.is_only;

    select
        f.live_workers,
        (select max(r.replay_lag) from pg_stat_replication as r) as replica_lag,
        rowferry.share_connections() as connections,
        f.request_rates as fleet_rates
    from rowferry.fleet as f;
$$;
