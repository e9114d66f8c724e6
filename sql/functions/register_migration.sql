-- Stores the plan under its name; returns the migration's id and the plan's revision. The row is locked only
-- where the plan is new or has changed. The caller holds the lock of `lock_enqueue` (sql/queries/enqueue.sql).
-- `p_queues`: what the plan says of its queues, by name: {priority, weight, max_claimed, next, payload}, each of them
-- optional. Where the plan says the same of a queue as when it was last stored, that queue's row stays as it is, with
-- what an operator has changed there; a queue that the plan no longer names has the defaults again. No pause ends.
-- Raises invalid_parameter_value where batches wait that were planned otherwise: see rowferry.guard_plan.
-- Writes: migration, queue. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.register_migration(p_name text, p_plan jsonb, p_queues jsonb default '{}')
returns table (migration_id bigint, revision integer)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into rowferry.migration (name, plan)
    values (p_name, p_plan)
    on conflict on constraint migration_name_key do nothing;

    update rowferry.migration as m
    set plan = p_plan
    where m.name = p_name and m.plan is distinct from p_plan;

    insert into rowferry.queue (migration_id, name)
    select
        m.id,
        said.name
    from rowferry.migration as m
    cross join jsonb_object_keys(p_queues) as said (name)
    where
        m.name = p_name
        and not exists (select from rowferry.queue as q where q.migration_id = m.id and q.name = said.name);

    update rowferry.queue as q
    set
        priority = coalesce((said.queue ->> 'priority')::integer, 0),
        weight = coalesce((said.queue ->> 'weight')::double precision, 1),
        max_claimed = (said.queue ->> 'max_claimed')::integer,
        next = array(
            select n.name
            from jsonb_array_elements_text(
                case jsonb_typeof(said.queue -> 'next') when 'array' then said.queue -> 'next' else '[]' end
            ) with ordinality as n (name, place)
            order by n.place
        ),
        payload = coalesce(nullif(said.queue -> 'payload', 'null'), '{}'),
        planned = said.queue
    from rowferry.migration as m
    cross join lateral (
        select
            k.id,
            p_queues -> k.name as queue
        from rowferry.queue as k
        where k.migration_id = m.id
    ) as said
    where m.name = p_name and q.id = said.id and q.planned is distinct from said.queue;

    select
        m.id,
        m.revision
    from rowferry.migration as m
    where m.name = p_name;
$$;
