-- Raises invalid_parameter_value unless a patch of a batch's payload narrows the entries that the batch means, and
-- says nothing else: `first` and `last`, of object keys inside of its own, by their bytes; `items` are some of its own,
-- unchanged; `only` and `unsettled` name ids that its own name, where these name any; `is_begun`.
-- A range of rows is not compared with the batch's own: the role may update all rows of that table itself.
-- Writes: nothing. Called by: rowferry.split_batch.
create or replace function rowferry.check_part(p_batch_id bigint, p_part jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_own jsonb;
    v_strange text;
begin
    select q.payload into strict v_own from rowferry.batch_queue as q where q.id = p_batch_id;
    select string_agg(k.key, ', ' order by k.key) into v_strange
    from jsonb_object_keys(p_part) as k (key)
    where
        not case
            when k.key in ('first', 'last') then not v_own ? 'items'
            when k.key in ('items', 'unsettled') then v_own ? k.key
            else k.key in ('only', 'is_begun')
        end;
    if v_strange is not null then
        raise invalid_parameter_value using
        message = format('a part of batch %s cannot change "%s"', p_batch_id, v_strange);
    end if;
    if v_own ? 'objects' and (
        p_part ->> 'first' collate "C" < v_own ->> 'first' or p_part ->> 'last' collate "C" > v_own ->> 'last'
    ) then
        raise invalid_parameter_value using
        message = format('a part does not lie inside of batch %s', p_batch_id);
    end if;

    select k.key into v_strange
    from unnest(array['items', 'only', 'unsettled']) as k (key)
    where
        p_part ? k.key
        and jsonb_typeof(p_part -> k.key) is distinct from 'array'
        and not (k.key = 'unsettled' and p_part -> k.key = 'null' and v_own -> k.key = 'null');
    if v_strange is not null then
        raise invalid_parameter_value using
        message = format('"%s" of a part of batch %s is no array', v_strange, p_batch_id);
    end if;

    select k.key into v_strange
    from unnest(array['items', 'only', 'unsettled']) as k (key)
    where
        jsonb_typeof(p_part -> k.key) = 'array'
        and jsonb_typeof(v_own -> k.key) = 'array'
        and exists (
            select p.value
            from jsonb_array_elements(p_part -> k.key) as p
            except all
            select o.value
            from jsonb_array_elements(v_own -> k.key) as o
        );
    if v_strange is not null then
        raise invalid_parameter_value using
        message = format('"%s" of a part are not all among those of batch %s', v_strange, p_batch_id);
    end if;
end;
$$;
