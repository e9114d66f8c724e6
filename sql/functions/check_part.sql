-- Raises invalid_parameter_value where a patch of a batch's payload says more than which entries are meant: another
-- table, side or choice. The entries are not compared with the batch's own: the role may update all rows of its table.
-- Writes: nothing. Called by: rowferry.split_batch.
create or replace function rowferry.check_part(p_part jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_part - array['first', 'last', 'items', 'only', 'unsettled', 'is_begun'] <> '{}' then
        raise invalid_parameter_value using
        message = format('a part of a batch cannot change its choices: %s', p_part);
    end if;
end;
$$;
