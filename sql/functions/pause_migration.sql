-- Pauses a migration whose batches cannot be worked on, for a reason in one sentence; returns whether it ran before.
-- Raises insufficient_privilege where another session is that worker (rowferry.check_worker), or where it has made no
-- attempt at a batch of the migration within the last hour, of the last 10,000 attempts. Null: the caller has the
-- rights of the owner.
-- Writes: migration. Called by: rowferry_worker/backoff.py.
create or replace function rowferry.pause_migration(
    p_migration_id bigint, p_reason text, p_worker_id text default null
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    perform rowferry.check_worker(p_worker_id) where p_worker_id is not null;
    if not pg_has_role(session_user, current_user, 'member')
        and not exists (
            select
            from (
                select
                    a.batch_id,
                    a.worker_id,
                    a.started_at
                from rowferry.batch_attempt as a
                order by a.id desc
                limit 10000
            ) as l
            inner join rowferry.batch_queue as q on l.batch_id = q.id
            where
                l.worker_id = p_worker_id
                and l.started_at > statement_timestamp() - interval '1 hour'
                and q.migration_id = p_migration_id
        )
    then
        raise insufficient_privilege using
        message = format('worker %s has not worked on migration %s', coalesce(p_worker_id, '?'), p_migration_id);
    end if;

    update rowferry.migration as m
    set paused_at = clock_timestamp(), pause_reason = p_reason, paused_by_worker = true
    where m.id = p_migration_id and m.paused_at is null;
    return found;
end;
$$;
