-- Deletes the migrations that are over, with their plans, queues, passes and events, and returns their names: no batch
-- of theirs is left, whatever its status (see rowferry.prune_batches), and they were made, changed, enqueued, paused
-- and resumed longer ago than `p_older_than`. A migration stays that has a recorded upload, which `rowferry
-- clean-uploads` needs its plan for, or passes and an application that is not switched yet: its next pass begins
-- where the last one ended. So does one that is being enqueued, or that another transaction has locked.
-- An enqueue of the same plan makes the migration anew.
-- Writes: migration, pass, batch_tally, coverage, server_fact (and, by cascade, queue, event). Called by: rowferry
-- prune.
create or replace function rowferry.prune_migrations(p_older_than interval)
returns setof text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_over record;
begin
    for v_over in
        select
            m.id,
            m.name
        from rowferry.migration as m
        where
            greatest(m.created_at, m.updated_at, m.paused_at, m.switched_at) < now() - p_older_than
            and not exists (select from rowferry.batch_queue as q where q.migration_id = m.id)
            and not exists (select from rowferry.upload as u where u.migration_id = m.id)
            and not exists (
                select from rowferry.pass as p
                where p.migration_id = m.id and (m.switched_at is null or p.began_at >= now() - p_older_than)
            )
            and not exists (
                select from rowferry.event as e
                where e.migration_id = m.id and e.at >= now() - p_older_than
            )
        order by m.name
        for update of m skip locked
    loop
        -- The lock of `lock_enqueue` (sql/queries/enqueue.sql): from here on no enqueue can add batches.
        if pg_try_advisory_xact_lock(hashtextextended('rowferry.enqueue ' || v_over.name, 0))
            and not exists (select from rowferry.batch_queue as q where q.migration_id = v_over.id)
        then
            delete from rowferry.pass as p where p.migration_id = v_over.id;
            delete from rowferry.batch_tally as t where t.migration_id = v_over.id;
            delete from rowferry.coverage as c where c.migration = v_over.name;
            delete from rowferry.server_fact as f where f.migration = v_over.name;
            delete from rowferry.migration as m where m.id = v_over.id;
            return next v_over.name;
        end if;
    end loop;
end;
$$;
