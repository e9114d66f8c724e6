-- Migrations by name: which there are, and which are paused.

-- name: list_migrations
-- The names of all migrations.
select name
from rowferry.migration
order by name;

-- name: list_migration_queues
-- The names of the queues that have batches of a migration, or of which anything is said there; of all where null.
select t.queue_name
from rowferry.table_progress as t
where %(migration)s::text is null or t.migration = %(migration)s
union
select k.name as queue_name
from rowferry.queue as k
inner join rowferry.migration as m on k.migration_id = m.id
where %(migration)s::text is null or m.name = %(migration)s
order by queue_name;

-- name: find_migration
-- One migration by name, the revision of its plan, and whether it is paused.
select
    id,
    revision,
    paused_at,
    pause_reason,
    paused_by_worker
from rowferry.migration
where name = %(name)s;

-- name: load_plan
-- The plan of one migration by name.
select plan
from rowferry.migration
where name = %(migration)s;

-- name: load_migration
-- One migration by id, with its plan: what a worker needs to start on its batches.
select
    id,
    name,
    revision,
    plan,
    (
        select coalesce(jsonb_object_agg(f.fact, coalesce(to_jsonb(f.key), to_jsonb(f.holds))), jsonb_build_object())
        from rowferry.server_fact as f
        where f.migration = m.name
    ) as facts
from rowferry.migration as m
where id = %(id)s;

-- name: read_facts
-- What the servers of a migration were seen to do.
select
    fact,
    holds
from rowferry.server_fact
where migration = %(migration)s;

-- name: read_chain
-- The queues of one migration that have settings: what follows each, and whether it is paused.
select
    q.name,
    q.next,
    q.paused_at is not null as is_paused
from rowferry.queue as q
inner join rowferry.migration as m on q.migration_id = m.id
where m.name = %(name)s;
