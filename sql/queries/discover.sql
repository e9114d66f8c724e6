-- What `rowferry plan --discover` asks of the database: the catalogue, and some rows of each column. Nothing is written.

-- name: columns_of_database
-- All columns of the tables that this role may read, with the kind of texts that they can hold: `text`, `json`, `array`,
-- or null. Partitions are left out, since their parent has all of their rows, and so are our own tables.
select
    n.nspname as schema_name,
    c.relname as table_name,
    pg_table_is_visible(c.oid) as is_visible,
    a.attname as column_name,
    format_type(a.atttypid, a.atttypmod) as type,
    a.attgenerated <> '' as is_generated,
    case
        when t.typname in ('json', 'jsonb') then 'json'
        when t.typcategory = 'S' then 'text'
        when t.typcategory = 'A' and e.typcategory = 'S' then 'array'
    end as kind
from pg_class as c
inner join pg_namespace as n on c.relnamespace = n.oid
inner join pg_attribute as a on c.oid = a.attrelid
inner join pg_type as t on a.atttypid = t.oid
left join pg_type as e on t.typelem = e.oid
where
    c.relkind in ('r', 'p') and not c.relispartition
    and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%%'
    and not (n.nspname = 'rowferry' and c.relname = any(%(own_tables)s::text []))
    and a.attnum > 0 and not a.attisdropped
    and has_column_privilege(c.oid, a.attnum, 'select')
order by n.nspname, c.relname, a.attnum;

-- name: list_unique_columns
-- The columns of each unique index that names every row: without a condition, an expression or a nullable column. The
-- primary key comes first, then the index of the fewest columns.
select
    n.nspname as schema_name,
    c.relname as table_name,
    array_agg(a.attname::text order by u.position) as columns
from pg_index as x
inner join pg_class as c on x.indrelid = c.oid
inner join pg_namespace as n on c.relnamespace = n.oid
cross join unnest(x.indkey::int2 []) with ordinality as u (number, position)
left join pg_attribute as a on c.oid = a.attrelid and u.number = a.attnum
where
    x.indisunique and x.indisvalid and x.indpred is null and u.position <= x.indnkeyatts
    and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%%'
group by n.nspname, c.relname, x.indexrelid, x.indisprimary
having bool_and(coalesce(a.attnotnull, false))
order by n.nspname, c.relname, x.indisprimary desc, count(*), x.indexrelid;

-- name: table_blocks
-- The size of a table with its partitions and children, in blocks.
with recursive tables as (
    select to_regclass(%(table)s)::oid as id
    union all
    select i.inhrelid as id
    from pg_inherits as i
    inner join tables as t on i.inhparent = t.id
)

select coalesce(sum(pg_relation_size(t.id)), 0)::bigint / current_setting('block_size')::bigint as blocks
from tables as t;

-- name: count_rows
-- How many rows of a small table meet a condition.
select count(*) as rows
from {table} as e
where {wanted};

-- name: sample_rows
-- Some rows of a table, chosen by a seed: from all over a small one (bernoulli), from blocks of a large one (system).
select
    {id} as id,
    {value} as value
from {table} as e tablesample {method} (%(percent)s) repeatable (%(seed)s)
where {wanted}
limit %(most)s;

-- name: find_by_ids
-- The texts of some rows, by ids that were read off the keys of objects.
select
    {id} as id,
    {value} as value
from {table} as e
where e.{id_column} = any(%(ids)s::text []::{id_type} []);
