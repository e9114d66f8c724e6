-- rowferry.guard_plan()
--   Trigger: whoever changes a plan, by an enqueue or by an UPDATE, gives it a new revision, so that workers read it
--   again. How a side is spoken to may change while batches wait, where it is may not.
--   Raises invalid_parameter_value where batches wait (INIT or ERROR) that were planned otherwise: for other buckets or
--   endpoints, or for entries that the new plan does not have in the same form.
--   Writes: the row itself. Called by: an UPDATE of migration.plan to another value, by anybody.
create or replace function rowferry.guard_plan()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting bigint;
    mutable_keys constant text [] := array['profile', 'max_requests_per_second'];
    moved constant boolean :=
        ((old.plan -> 'legacy') - mutable_keys) is distinct from ((new.plan -> 'legacy') - mutable_keys)
        or ((old.plan -> 'production') - mutable_keys) is distinct from ((new.plan -> 'production') - mutable_keys);
    unchanged constant text [] := array(
        select concat(e.value ->> 'table', '.', e.value ->> 'key')
        from jsonb_array_elements(old.plan -> 'entries') as e
        inner join jsonb_array_elements(new.plan -> 'entries') as n on e.value = n.value
    );
begin
    select count(*) into waiting
    from rowferry.batch_queue as q
    where
        q.migration_id = new.id
        and q.status in ('INIT', 'ERROR')
        and (moved or coalesce(q.payload ->> 'entries' <> all(unchanged), true));
    if waiting > 0 then
        raise invalid_parameter_value using message = format(
            'migration "%s" has %s batches waiting or in ERROR that were planned otherwise; '
            'finish or delete them first, or give the changed plan a name of its own',
            new.name, waiting
        );
    end if;
    new.revision := old.revision + 1;
    new.updated_at := now();
    return new;
end;
$$;

create or replace trigger migration_plan_guard
before update of plan on rowferry.migration
for each row
when (new.plan is distinct from old.plan)
execute function rowferry.guard_plan();
