-- Raises invalid_parameter_value unless the range lies inside the batch's own, in the order of the ids' types. Checks
-- nothing where such a type cannot be found here (a table that the plan names without its schema, outside `public`), or
-- where its input could run another role's code with the rights of this schema's owner: arrays, composites, ranges.
-- A domain is checked by its base type, whose input runs no CHECK.
-- Ranges of object keys are compared as bytes; the last one of a listing has no end.
-- Writes: nothing. Called by: rowferry.check_part, rowferry.add_ranges.
create or replace function rowferry.check_range(p_batch_id bigint, p_first text, p_last text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_own jsonb;
    v_ids text [];
    v_is_inside boolean;
begin
    select q.payload into strict v_own from rowferry.batch_queue as q where q.id = p_batch_id;
    if v_own ? 'objects' then
        if p_first collate "C" < v_own ->> 'first' or p_last collate "C" > v_own ->> 'last' then
            raise invalid_parameter_value using
            message = format('%s to %s does not lie inside of batch %s', p_first, p_last, p_batch_id);
        end if;
        return;
    end if;

    with recursive batch as (
        select
            q.payload,
            case jsonb_typeof(e.value -> 'id')
                when 'array' then e.value -> 'id' else jsonb_build_array(e.value -> 'id')
            end as ids,
            -- A plan's names are exactly as written: rowferry/db/entries.py reads them in the same way.
            array(
                select coalesce(replace(p.parts[1], '""', '"'), p.parts[2])
                from regexp_matches(e.value ->> 'table', '"((?:[^"]|"")+)"|([^".]+)', 'g')
                with ordinality as p (parts, n)
                order by p.n
            ) as names
        from rowferry.batch_queue as q
        inner join rowferry.migration as m on q.migration_id = m.id
        cross join jsonb_array_elements(m.plan -> 'entries') as e
        where
            q.id = p_batch_id
            and coalesce(e.value ->> 'name', concat_ws('.', e.value ->> 'table', e.value ->> 'key'))
            = q.payload ->> 'entries'
    ),

    types as (
        select
            b.payload,
            jsonb_array_length(b.ids) as columns,
            i.number,
            a.atttypid as type_id,
            a.atttypmod as modifier,
            a.attcollation as collation_id
        from batch as b
        cross join jsonb_array_elements_text(b.ids) with ordinality as i (name, number)
        inner join pg_class as c on b.names[cardinality(b.names)] = c.relname
        inner join pg_namespace as s on c.relnamespace = s.oid
        inner join pg_attribute as a on c.oid = a.attrelid and i.name = a.attname
        where
            s.nspname = case cardinality(b.names) when 1 then 'public' when 2 then b.names[1] end
            and c.relkind in ('r', 'p')
        union all
        select
            t.payload,
            t.columns,
            t.number,
            d.typbasetype,
            d.typtypmod,
            t.collation_id
        from types as t
        inner join pg_type as d on t.type_id = d.oid
        where d.typtype = 'd'
    ),

    -- The ids in the parameters $1 to $4, each as its own value; of several columns, as a row of values.
    ids as (
        select
            p.number,
            t.payload,
            case t.columns
                when 1 then string_agg(concat('$', p.number, '::', t.name), '')
                else
                    concat(
                        'row(',
                        string_agg(
                            format('($%s::jsonb ->> %s)::%s', p.number, t.number - 1, t.name), ', ' order by t.number
                        ),
                        ')'
                    )
            end as value
        from (
            select
                t.payload,
                t.columns,
                t.number,
                format_type(t.type_id, t.modifier)
                || case when c.oid is null then '' else format(' collate %I.%I', n.nspname, c.collname) end as name
            from types as t
            inner join pg_type as b on t.type_id = b.oid
            left join pg_collation as c on t.collation_id = c.oid
            left join pg_namespace as n on c.collnamespace = n.oid
            where b.typtype in ('b', 'e') and b.typcategory <> 'A'
        ) as t
        cross join generate_series(1, 4) as p (number)
        group by t.payload, t.columns, p.number
        having count(*) = t.columns
    )

    select
        i.payload,
        array_agg(i.value order by i.number)
    into v_own, v_ids
    from ids as i
    group by i.payload;
    if v_ids is null then
        return;
    end if;

    -- greatest and least know the type's own order; its operators may be in a schema that is not searched here.
    execute format(
        'select greatest(%1$s, %3$s)::text = (%1$s)::text and least(%2$s, %4$s)::text = (%2$s)::text '
        'and (%1$s) is not null and (%2$s) is not null',
        variadic v_ids
    ) into v_is_inside using p_first, p_last, v_own ->> 'first', v_own ->> 'last';
    if not coalesce(v_is_inside, false) then
        raise invalid_parameter_value using
        message = format('%s to %s does not lie inside of batch %s', p_first, p_last, p_batch_id);
    end if;
end;
$$;
