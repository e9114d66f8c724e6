-- Trigger: refuses a chain of queues that leads back to its beginning: its batches would be handed on for ever.
-- Raises invalid_parameter_value, which names the queue.
-- Two sessions that change queues of one migration take turns, from here to their commits: each sees the other's.
-- Writes: nothing. Called by: any INSERT of a queue, any UPDATE of queue.next or of its name, when the statement has
-- ended.
create or replace function rowferry.guard_next()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from rowferry.migration as m where m.id = new.migration_id for no key update;
    if new.name in (
        with recursive followers as (
            select n.name
            from unnest(new.next) as n (name)
            union
            select n.name
            from followers as f
            inner join rowferry.queue as q on q.migration_id = new.migration_id and f.name = q.name
            cross join unnest(q.next) as n (name)
        )

        select f.name from followers as f
    ) then
        raise invalid_parameter_value using
        message = format('queue "%s" would hand on to itself, by way of the queues after it', new.name);
    end if;
    return null;
end;
$$;

create or replace trigger queue_next_guard
after insert or update of next, name, migration_id on rowferry.queue
for each row
when (new.next <> '{}')
execute function rowferry.guard_next();
