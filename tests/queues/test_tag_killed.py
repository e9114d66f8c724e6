"""Workers are killed while they tag: no tag is lost, neither an earlier one nor one set meanwhile; counts balance."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.s3.buckets import fresh_buckets
from support.s3.servers import running_server

OBJECTS, BATCH_SIZE = 600, 30
KILLED_AFTER = (1, 3, 6, 10)
"""Attempts that have begun when all workers are killed, round by round."""
MOST_TAGS = 7
"""Of the application, on one object: with those of the test and of the queue, S3's ten."""
LEASE = """
select payload from rowferry.batch_queue
where status in ('INIT', 'DONE') and id >= %s
order by id limit 1 for update skip locked
"""


@pytest.fixture(params=["versitygw", pytest.param("seaweedfs", marks=pytest.mark.xdist_group("seaweedfs"))])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    if request.param == "versitygw":
        yield request.getfixturevalue("versitygw")
        return
    with running_server(request.param) as server:
        yield server


class Application:
    """Sets tags of its own, merged as S3 lets it: on objects of batches that no worker has claimed at that moment.

    It holds the batch's row meanwhile, since S3 itself has no condition that would keep two writers apart.
    """

    def __init__(self, migration: Migration) -> None:
        self.tags: dict[int, dict[str, str]] = defaultdict(dict)
        """By the number of the object."""
        self.written_to_waiting = 0
        self._migration, self._random = migration, random.Random(4)

    def run(self, over: Event) -> None:
        last = max(batch["id"] for batch in self._migration.batches())
        with psycopg.Connection[DictRow].connect(self._migration.dsn, row_factory=dict_row) as connection:
            while not over.is_set():
                row = connection.execute(LEASE, [self._random.randint(1, last)]).fetchone()
                if row is not None:
                    self._set_tag(int(row["payload"]["first"]), int(row["payload"]["last"]))
                connection.commit()

    def _set_tag(self, first: int, last: int) -> None:
        number = self._random.randint(first, last)
        mine = self.tags[number]
        if len(mine) < MOST_TAGS:
            name, production = f"app-{len(mine)}", self._migration.production
            found = production.tags(f"{TO}{number}")
            assert mine.items() <= found.items(), f"tags of {number} were lost: {found}"
            self.written_to_waiting += "tier" not in found
            mine[name] = str(self._random.random())
            production.tag(f"{TO}{number}", {**found, name: mine[name]})


@pytest.mark.soak
def test_no_tag_is_lost_however_often_workers_are_killed(
    server: S3Server, make_migration: Callable[..., Migration]
) -> None:
    with fresh_buckets(server) as buckets:
        migration = make_migration(buckets, buckets)
        fill(migration)
        migration.enqueue(BATCH_SIZE, queue="tag")
        application, over = Application(migration), Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(application.run, over)
            try:
                work_and_kill(migration)
            finally:
                over.set()
            running.result()
        check(migration, application)


def fill(migration: Migration) -> None:
    """Make production rows of tenants, and their objects, each with a tag of its own."""
    migration.execute("alter table public.avatars add tenant_id text")
    migration.plan["queue"] = {"tag": {"set": {"tier": "cold", "tenant": {"column": "tenant_id"}}}}
    numbers = range(1, OBJECTS + 1)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda number: migration.production.put(f"{TO}{number}", b"body", Tagging=f"owner=o{number}"), numbers
            )
        )
    migration.execute(
        "insert into public.avatars select i, %s || i, 't' || i from generate_series(1, %s) as i", (TO, OBJECTS)
    )


def work_and_kill(migration: Migration) -> None:
    for more in (*KILLED_AFTER, math.inf):
        enough = len(migration.attempts()) + more
        with migration.workers(2, "--queue=tag", "--until-empty", "--parallel", "4") as workers:
            wait_for(
                lambda workers=workers, enough=enough: (
                    len(migration.attempts()) >= enough or all(worker.process.poll() is not None for worker in workers)
                )
            )
        migration.execute("delete from rowferry.worker")  # so that no claim waits for the heartbeat of a dead worker


def check(migration: Migration, application: Application) -> None:
    numbers = range(1, OBJECTS + 1)
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(numbers, pool.map(lambda n: migration.production.tags(f"{TO}{n}"), numbers), strict=True))
    assert found == {
        number: {"owner": f"o{number}", "tier": "cold", "tenant": f"t{number}", **application.tags[number]}
        for number in numbers
    }
    assert application.written_to_waiting, "the application tagged nothing before the queue did"
    assert any(attempt["verdict"] is None for attempt in migration.attempts()), "no worker died at work"
    assert migration.statuses() == {"DONE"}
    counted = migration.counts("tag")
    assert counted.keys() <= {"migrated", "kept"}
    assert sum(counted.values()) == OBJECTS
    migration.check_balance()
