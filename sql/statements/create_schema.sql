-- What stands before the first migration: the schema, and the record of what was applied to it.
create schema if not exists rowferry;

create table if not exists rowferry.schema_migration (
    number integer not null,
    name text not null,
    applied_at timestamptz not null default now(),
    applied_by text not null,
    constraint schema_migration_pkey primary key (number)
);

create table if not exists rowferry.installation (
    only_row boolean not null default true,
    version text not null,
    initialised_at timestamptz not null default now(),
    constraint installation_pkey primary key (only_row),
    constraint installation_only_row_check check (only_row)
);
