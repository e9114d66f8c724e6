-- Rows that a queue writes into a table that it does not read its entries from.

-- name: describe_columns
-- Some columns of a table, one row each: null where there is no such column. Types have no modifier: an explicit cast to
-- varchar(3) would cut a text in silence, where an assignment refuses it.
select
    t.oid is not null as is_table,
    u.name,
    format_type(a.atttypid, -1) as type,
    y.typcategory::text as category,
    array(
        select r.name
        from unnest(array['select', 'insert', 'update']) as r (name)
        where has_column_privilege(t.oid, a.attnum, r.name)
    ) as rights
from (select to_regclass(%(table)s) as oid) as t
cross join unnest(%(columns)s::text []) as u (name)
left join pg_attribute as a on t.oid = a.attrelid and u.name = a.attname and a.attnum > 0 and not a.attisdropped
left join pg_type as y on a.atttypid = y.oid;

-- name: upsert_rows
-- Inserts rows, or updates those of equal keys that hold something else, in the order of the keys: two sessions that
-- write the same rows lock them in one order. Returns the numbers of those that were inserted or updated, from 1.
with rowferry_rows as materialized (
    select
        w.number,
        {values}
    from unnest({texts}) with ordinality as w ({names}, number)
),

rowferry_written as (
    insert into {table} as t ({columns})
    select {given} from rowferry_rows as r order by {key_order}
    on conflict ({keys}) do {conflict_action}
    returning {written_keys}
)

select r.number
from rowferry_rows as r
where exists (select from rowferry_written as t where {same_keys});

-- name: find_upserted
-- The numbers of rows whose keys are in the table, and that meet a condition.
with rowferry_rows as materialized (
    select
        w.number,
        {values}
    from unnest({texts}) with ordinality as w ({names}, number)
)

select r.number
from rowferry_rows as r
inner join {table} as t on {same_keys}
where {same_values}
order by {key_order}
{row_lock};
