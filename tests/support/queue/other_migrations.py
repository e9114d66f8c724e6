"""Another migration beside that of a test."""

from rowferry.db.connection import connect
from rowferry.plan_file import parse_plan
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration


def add_other_migration(migration: Migration) -> None:
    """Enqueue one batch of another migration, over another table between the same buckets."""
    migration.execute("create table public.covers (id bigint primary key, path text)")
    migration.execute("insert into public.covers values (1, %s)", (f"{FROM}cover.png",))
    migration.legacy.put(f"{FROM}cover.png", b"a cover")
    entries = [{"table": "public.covers", "id": "id", "key": "path", "from": FROM, "to": TO}]
    plan = parse_plan(migration.plan | {"migration": {"name": "covers"}, "entries": entries}, "of the test")
    with connect("enqueue", autocommit=True) as connection:
        enqueue(connection, plan, EnqueueRequest(MIGRATE))
