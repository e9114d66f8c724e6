-- Migrations by name: which there are, and which are paused.

-- name: list_migrations
-- The names of all migrations.
select name
from rowferry.migration
order by name;

-- name: find_migration
-- One migration by name, and whether it is paused.
select
    id,
    paused_at,
    pause_reason
from rowferry.migration
where name = %(name)s;

-- name: load_migration
-- One migration by id, with its plan: what a worker needs to start on its batches.
select
    id,
    name,
    revision,
    plan
from rowferry.migration
where id = %(id)s;

-- name: read_pause_reasons
-- Why workers paused migrations: one row for each migration that a worker paused, and not a person.
select
    name,
    pause_reason
from rowferry.migration
where pause_reason is not null;
