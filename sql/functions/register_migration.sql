-- rowferry.register_migration(name text, plan jsonb)
--   Stores the plan under its name and returns the migration's id. Its row stays locked until the caller commits,
--   so that enqueues of one migration follow one another.
--   Raises invalid_parameter_value when batches wait (INIT or ERROR) that were planned otherwise:
--   for other buckets or endpoints, or for entries that the new plan does not have in the same form.
--   Writes: migration. Called by: rowferry_enqueue/enqueue.py.
create or replace function rowferry.register_migration(name text, plan jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    known rowferry.migration;
    waiting bigint;
    -- How a side is spoken to may change under way; where it is may not.
    manners constant text [] := array['profile', 'max_requests_per_second'];
begin
    insert into rowferry.migration (name, plan)
    values ($1, $2)
    on conflict on constraint migration_name_key do update set passes = migration.passes
    returning * into strict known;

    if known.plan is distinct from $2 then
        select count(*) into waiting
        from rowferry.batch_queue as q
        where q.migration_id = known.id and q.status in ('INIT', 'ERROR')
            and (
                ((known.plan -> 'legacy') - manners) is distinct from (($2 -> 'legacy') - manners)
                or ((known.plan -> 'production') - manners) is distinct from (($2 -> 'production') - manners)
                or not exists (
                    select from jsonb_array_elements(known.plan -> 'entries') as e
                    inner join jsonb_array_elements($2 -> 'entries') as n on e.value = n.value
                    where concat(e.value ->> 'table', '.', e.value ->> 'key') = q.payload ->> 'entries'
                )
            );
        if waiting > 0 then
            raise invalid_parameter_value using message = format(
                'migration "%s" has %s batches waiting or in ERROR that were planned otherwise; '
                'finish or delete them first, or give the changed plan a name of its own',
                $1, waiting
            );
        end if;
    end if;

    update rowferry.migration as m
    set
        plan = $2,
        passes = m.passes + 1,
        revision = m.revision + (m.plan is distinct from $2)::integer,
        updated_at = now()
    where m.id = known.id;
    return known.id;
end;
$$;
