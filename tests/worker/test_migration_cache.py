"""The migrations that a process has open: the silence of one's server holds up no other."""

import time
from contextlib import closing, suppress
from threading import Thread

from rowferry.batch import Batch
from rowferry.db.connection import connect
from rowferry.errors import RowferryError
from rowferry_worker.migration import MigrationContextCache
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.other_migrations import add_other_migration
from support.s3.stand_in import StandIn, keep_silent


def test_a_silent_server_holds_up_no_other_migration(migration: Migration) -> None:
    migration.given(1)
    add_other_migration(migration)
    ids = {row["name"]: row["id"] for row in migration.execute("select id, name from rowferry.migration")}
    with StandIn(keep_silent) as silent:
        migration.execute("delete from rowferry.batch_queue")
        migration.execute(
            "update rowferry.migration set plan = jsonb_set(plan, '{legacy,endpoint_url}', to_jsonb(%s::text)) "
            "where name = 'avatars'",
            (silent.endpoint_url,),
        )
        cache = MigrationContextCache(4)
        ended: list[float] = []

        def open_silent() -> None:
            with closing(connect("first")) as connection, suppress(RowferryError):
                cache.find(connection, batch_of(ids["avatars"]))
            ended.append(time.monotonic())

        waiting = Thread(target=open_silent)
        waiting.start()
        wait_for(lambda: bool(silent.requests))
        with closing(connect("second")) as connection:
            assert cache.find(connection, batch_of(ids["covers"])).name == "covers"
        assert ended == [], "the first still waits for its server"
    waiting.join(timeout=60)  # the server has gone
    cache.close()


def batch_of(migration_id: int) -> Batch:
    return Batch(1, migration_id, 1, "migrate", {}, 1, 5, 0)
