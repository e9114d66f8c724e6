-- Puts items in a queue of a migration, in batches of at most `p_batch_size`, and returns how many batches and items.
-- `p_items` is an array of objects, each with an `id`: a text that no other of them has. The rest of an item is for
-- the queue. `p_choices`: what the batches say beside their items; null: what rowferry.queue.payload says. A retry
-- reads the items that the last attempt has left (`unsettled`), whatever these say.
-- Adds what it is given: it does not look whether an item waits already. An application calls it in the transaction
-- that makes what its items name.
-- Raises invalid_parameter_value where there is no such migration, or an item is none.
-- Writes: batch_queue. Called by: rowferry_enqueue/items.py, and applications.
create or replace function rowferry.enqueue_items(
    p_migration text, p_queue text, p_items jsonb, p_batch_size integer default 500, p_choices jsonb default null
)
returns table (batches bigint, entries bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_migration rowferry.migration;
    v_fault text;
begin
    select m.* into v_migration from rowferry.migration as m where m.name = p_migration;
    if v_migration.id is null then
        raise invalid_parameter_value using
        message = format('there is no migration "%s" in this database', p_migration);
    end if;
    if jsonb_typeof(p_items) is distinct from 'array' or coalesce(p_batch_size, 0) < 1 then
        raise invalid_parameter_value using message = 'items are an array, and batches have at least one of them';
    end if;
    select
        case
            when i.id is null then format('item %s of them has no "id" that is a text', i.number)
            else format('the id "%s" is that of several items', i.id)
        end
    into v_fault
    from (
        select
            e.number,
            e.id,
            count(*) over (partition by e.id) as same
        from (
            select
                a.number,
                case when jsonb_typeof(a.item -> 'id') = 'string' then nullif(a.item ->> 'id', '') end as id
            from jsonb_array_elements(p_items) with ordinality as a (item, number)
        ) as e
    ) as i
    where i.id is null or i.same > 1
    order by i.number
    limit 1;
    if v_fault is not null then
        raise invalid_parameter_value using message = v_fault;
    end if;

    return query
    with added as (
        insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
        select
            v_migration.id,
            p_queue,
            '{"unsettled": null}' || coalesce(
                p_choices,
                (
                    select q.payload
                    from rowferry.queue as q
                    where q.migration_id = v_migration.id and q.name = p_queue
                ),
                '{}'
            ) || jsonb_build_object('entries', 'items', 'items', c.items),
            c.entry_count,
            coalesce((v_migration.plan #>> '{migration, max_attempts}')::integer, 5)
        from (
            select
                jsonb_agg(a.item order by a.number) as items,
                count(*)::integer as entry_count,
                min(a.number) as first
            from jsonb_array_elements(p_items) with ordinality as a (item, number)
            group by (a.number - 1) / p_batch_size
        ) as c
        order by c.first
        returning entry_count
    )

    select
        count(*),
        coalesce(sum(a.entry_count), 0)::bigint
    from added as a;
end;
$$;
