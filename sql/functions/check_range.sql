-- rowferry.check_range(batch_id bigint, first text, last text)
--   Raises invalid_parameter_value unless the range lies inside the batch's own, in the order of the id's type. Says
--   nothing where that type cannot be found out here: a table that the plan names without its schema, outside `public`.
--   Writes: nothing. Called by: rowferry.split_off.
create or replace function rowferry.check_range(batch_id bigint, first text, last text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    own jsonb;
    id_type text;
    is_inside boolean;
begin
    select
        q.payload,
        format_type(a.atttypid, a.atttypmod)
        || case when c.oid is null then '' else format(' collate %I.%I', n.nspname, c.collname) end
    into own, id_type
    from rowferry.batch_queue as q
    inner join rowferry.migration as m on q.migration_id = m.id
    cross join jsonb_array_elements(m.plan -> 'entries') as e
    inner join pg_attribute as a
        on a.attrelid = coalesce(to_regclass(e.value ->> 'table'), to_regclass('public.' || (e.value ->> 'table')))
        and a.attname = e.value ->> 'id'
    left join pg_collation as c on a.attcollation = c.oid
    left join pg_namespace as n on c.collnamespace = n.oid
    where q.id = $1 and concat(e.value ->> 'table', '.', e.value ->> 'key') = q.payload ->> 'entries';
    if id_type is null then
        return;
    end if;

    -- greatest and least know the type's own order; its operators may stand in a schema that is not searched here.
    execute format(
        'select greatest($1::%1$s, $3::%1$s)::text = ($1::%1$s)::text and least($2::%1$s, $4::%1$s)::text = ($2::%1$s)::text',
        id_type
    ) into is_inside using $2, $3, own ->> 'first', own ->> 'last';
    if not is_inside then
        raise invalid_parameter_value using
        message = format('%s to %s does not lie inside of batch %s', $2, $3, $1);
    end if;
end;
$$;
