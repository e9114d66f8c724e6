-- Trigger: gives a changed plan a new revision, so that workers read it again. While batches wait, a side's bucket and
-- endpoint_url may not change. All its other keys may: how the bucket is reached, and what its objects shall be.
-- Raises invalid_parameter_value where batches wait (INIT or ERROR) that were planned otherwise: for other buckets or
-- endpoints, or for entries or objects that the new plan does not have in the same form. Whether folders may be empty
-- does not count.
-- Entries that change begin their passes anew (rowferry.pass).
-- Writes: the row itself, pass. Called by: any UPDATE of migration.plan to another value.
create or replace function rowferry.guard_plan()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_waiting bigint;
    v_moved constant boolean := exists (
        select
        from unnest(array['legacy', 'production']) as s (side)
        cross join unnest(array['bucket', 'endpoint_url']) as k (key)
        where (old.plan #>> array[s.side, k.key]) is distinct from (new.plan #>> array[s.side, k.key])
    );
    v_unchanged constant text [] := array(
        select coalesce(e.value ->> 'name', concat_ws('.', e.value ->> 'table', e.value ->> 'key'))
        from jsonb_array_elements(old.plan -> 'entries') as e
        inner join jsonb_array_elements(new.plan -> 'entries') as n
            on e.value - 'may_be_empty' = n.value - 'may_be_empty'
        union all
        select coalesce(o.value ->> 'name', concat(o.value ->> 'prefix', '*'))
        from jsonb_array_elements(old.plan -> 'objects') as o
        inner join jsonb_array_elements(new.plan -> 'objects') as n on o.value = n.value
    );
begin
    select count(*) into v_waiting
    from rowferry.batch_queue as q
    where
        q.migration_id = new.id
        and q.status in ('INIT', 'ERROR')
        and (v_moved or (
            -- Items, and prefixes that a queue itself names, are not of the plan's entries and objects.
            not (q.payload ? 'items' or q.payload ? 'prefix')
            and coalesce(q.payload ->> 'entries' <> all(v_unchanged), true)
        ));
    if v_waiting > 0 then
        raise invalid_parameter_value using message = format(
            'migration "%s" has %s batches waiting or in ERROR that were planned otherwise; '
            'finish or delete them first, or give the changed plan a name of its own',
            new.name, v_waiting
        );
    end if;
    -- What earlier passes have copied was for the old plan.
    delete from rowferry.pass as p
    where p.migration_id = new.id and (v_moved or p.label <> all(v_unchanged));
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
