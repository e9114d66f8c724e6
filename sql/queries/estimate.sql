-- What `rowferry estimate` asks of the user's tables.

-- name: limit_statement
-- For one transaction: a huge table is not read for long.
select set_config('statement_timeout', %(timeout)s, true);

-- name: table_size
-- The size of a table with its partitions and children, in bytes and in blocks.
with recursive tables as (
    select %(table)s::oid as id
    union all
    select i.inhrelid as id
    from pg_inherits as i
    inner join tables as t on i.inhparent = t.id
)

select
    coalesce(sum(pg_relation_size(t.id)), 0)::bigint as bytes,
    coalesce(sum(pg_relation_size(t.id)), 0)::bigint / current_setting('block_size')::bigint as blocks
from tables as t
inner join pg_class as c on t.id = c.oid
where c.relkind = 'r';

-- name: count_legacy
-- The legacy entries of one table; one scan.
select count(*) as legacy
from {table} as e
where {is_legacy} and {where};

-- name: count_in_blocks
-- The legacy entries in some blocks of one table, chosen at random by a seed.
select count(*) as legacy
from {table} as e tablesample system (%(percent)s) repeatable (%(seed)s)
where {is_legacy} and {where};

-- name: sample_entries_in_blocks
-- Some of the legacy entries in these blocks, spread over the ids by a hash.
select
    {id_text} as id,
    {text} as key,
    {objects} as objects
from {table} as e tablesample system (%(percent)s) repeatable (%(seed)s)
where {is_legacy} and {where}
order by hashtext({id_text})
limit %(most)s;

-- name: count_connections
-- How many connections the server has for all ordinary roles together.
select
    current_setting('max_connections')::integer
    - current_setting('superuser_reserved_connections')::integer
    - coalesce(current_setting('reserved_connections', true)::integer, 0) as connections;
