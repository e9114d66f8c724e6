"""The scene of a large user, in five seconds of SQL: four migrations, 40 M entries, 840,000 failures, twelve hosts.

Nothing of it was worked on: batches and failures are written into the tables, metrics into a block of Prometheus. What
the boards are answered are the views and functions of the product.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from drawing.large.hosts import HOSTS, slots
from drawing.large.metrics import STEP, write_block
from drawing.prometheus import running
from drawing.scenario import make_reader, rowferry
from drawing.sources import Sources
from rowferry_lab.servers.postgres import EmbeddedPostgres

HERE = Path(__file__).parent
STATES = {
    "large": "avatars",
    "stalled": "covers-stalled",
    "halted": "customer-documents-2019-to-2026-eu-central-1-to-ap-southeast",
    "cutover": "thumbnails",
}
"""The pictures of the scene, and the migration that is chosen in each."""
SHOWN_SECONDS = 3600


@dataclass
class LargeScene:
    """The scene while it is looked at."""

    sources: Sources
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    scrape_seconds: int = STEP

    @property
    def started_at(self) -> float:
        """Return from when on it is shown."""
        return time.time() - SHOWN_SECONDS

    def go_on(self) -> None:
        """Let what runs run until now."""
        _execute((HERE / "goes_on.sql").read_text(encoding="utf-8"))


def run(folder: Path, look: Callable[[str, LargeScene], Any]) -> None:
    """Make the scene, and call `look` with the name of each state and the scene."""
    with _scene(folder) as seen:
        for state, migration in STATES.items():
            seen.chosen = {"migration": migration}
            seen.go_on()
            look(state, seen)


@contextmanager
def _scene(folder: Path) -> Iterator[LargeScene]:
    with EmbeddedPostgres() as postgres:
        before = dict(os.environ)
        os.environ["DATABASE_URL"] = postgres.dsn()
        try:
            rowferry("init")
            _make()
            dsn = make_reader()
            LargeScene(Sources(dsn, 0)).go_on()
            write_block(folder / "metrics", time.time())
            with running(folder, None) as port:
                yield LargeScene(Sources(dsn, port))
        finally:
            os.environ.clear()
            os.environ.update(before)


def _make() -> None:
    """Write the hosts where scene.sql reads them, and all the rest by it."""
    shared = {name: (first, last) for name, first, last in slots()}
    rows = [
        (host.name, number, host.lost, host.version, *shared.get(host.name, (-1, -1)))
        for number, host in enumerate(HOSTS)
    ]
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(
            "create temporary table scene_host "
            "(host text, number integer, lost integer, version text, first_slot integer, last_slot integer)"
        )
        connection.cursor().executemany("insert into scene_host values (%s, %s, %s, %s, %s, %s)", rows)
        connection.execute((HERE / "scene.sql").read_bytes())
    _execute("vacuum analyze")


def _execute(statements: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(statements.encode())
