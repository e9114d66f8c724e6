-- What `rowferry init` does beside running migrations, functions and views.

-- name: has_schema
-- Whether `rowferry init` has been run here.
select exists (
    select from pg_class as c
    inner join pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'rowferry' and c.relname = 'progress'
) as has_schema;

-- name: lock_schema
-- Serialises `rowferry init`: a second host waits here until the first has committed.
select pg_advisory_xact_lock(hashtextextended('rowferry.schema', 0));

-- name: find_something_else
-- Something in a schema rowferry that has no record of our migrations: another program made it.
select coalesce(
    (select min(c.relname) from pg_class as c where c.relnamespace = n.oid),
    (select min(p.proname) from pg_proc as p where p.pronamespace = n.oid)
) as name
from pg_namespace as n
where
    n.nspname = 'rowferry'
    and not exists (
        select from pg_class as c
        where c.relnamespace = n.oid and c.relname = 'schema_migration'
    );

-- name: create_schema
-- What precedes the first migration: the schema, and the record of what was applied to it.
create schema if not exists rowferry;

create table if not exists rowferry.schema_migration (
    number integer not null,
    name text not null,
    digest text not null,
    applied_at timestamptz not null default now(),
    applied_by text not null,
    constraint schema_migration_pkey primary key (number)
);

create table if not exists rowferry.installation (
    only_row boolean not null default true,
    version text not null,
    initialised_at timestamptz not null default now(),
    views jsonb not null default '{{}}',
    constraint installation_pkey primary key (only_row),
    constraint installation_only_row_check check (only_row)
);

-- name: list_secured_tables
-- Our tables with row-level security.
select c.relname as name
from pg_class as c
where
    c.relnamespace = to_regnamespace('rowferry')
    and c.relkind = 'r'
    and (c.relrowsecurity or c.relforcerowsecurity);

-- name: disable_row_security
-- Lets roles see the rows of one of our tables, as far as they are granted the table.
alter table rowferry.{table} disable row level security, no force row level security;

-- name: find_hidden_table
-- A table of ours of which row-level security shows this role nothing: no policy lets a row through.
select c.relname as name
from pg_class as c
where
    c.relnamespace = to_regnamespace('rowferry')
    and c.relkind = 'r'
    and c.relrowsecurity
    and row_security_active(c.oid)
    and not exists (select from pg_policy as p where p.polrelid = c.oid)
order by c.relname
limit 1;

-- name: has_tables
-- Whether the first migration has made its tables.
select to_regclass('rowferry.migration') is not null as has_tables;

-- name: make_claim_key
-- The key that claims are sealed with, where there is none: the database is new, or was restored without data.
insert into rowferry.claim_key (key)
select gen_random_uuid()
where not exists (select from rowferry.claim_key);

-- name: applied_migrations
-- The migrations of the schema that this database has.
select
    number,
    name,
    digest
from rowferry.schema_migration
order by number;

-- name: record_migration
-- Records a migration that was applied.
insert into rowferry.schema_migration (number, name, digest, applied_by)
values (%(number)s, %(name)s, %(digest)s, %(applied_by)s);

-- name: read_installation
-- The version that initialised this database last, and the views that it left.
select
    version,
    views
from rowferry.installation;

-- name: record_installation
-- Records the version that initialises this database, and the views that it leaves (`describe_view`), by name.
insert into rowferry.installation (version, views)
values (%(version)s, %(views)s)
on conflict on constraint installation_pkey do update
set version = excluded.version, views = excluded.views, initialised_at = now();

-- name: describe_view
-- What a view is now, in short; null where it is not there. A view that is still the same need not be replaced: that
-- waits for each transaction that has read it.
select md5(pg_get_viewdef(to_regclass(%(name)s))) as definition;

-- name: comment_on_function
-- What an operator's tools show of a function: the head of its file.
comment on routine {described} is {comment};

-- name: comment_on_view
-- The same of a view.
comment on view {described} is {comment};

-- name: drop_view
-- Drops a view whose columns have changed.
drop view rowferry.{view} cascade;

-- name: tally_is_missing
-- Whether there are batches without a tally: the queue was restored without its triggers.
select
    not exists (select from rowferry.batch_tally)
    and exists (select from rowferry.batch_queue) as tally_is_missing;

-- name: revoke_functions
-- PostgreSQL lets every role execute a new function; `rowferry init --grants` names the roles that may.
revoke all on all functions in schema rowferry from public;

-- name: analyze_small_tables
-- PostgreSQL takes a table that was never analysed for ten pages of rows, and autovacuum does not analyse one of a few
-- rows. So views that join these seemed dear enough to be compiled (JIT), which took twenty times as long as they do.
analyze rowferry.migration, rowferry.queue, rowferry.pass, rowferry.event, rowferry.worker, rowferry.upload;
