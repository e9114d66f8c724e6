"""A run of a sweep checks every end, takes as long as its latency asks for, and leaves no worker behind."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from rowferry.db.connection import Connection, connect
from rowferry.db.schema import initialise
from rowferry_lab.simulated.environment import Environment, start_environment
from rowferry_lab.sweep import run
from rowferry_lab.sweep.grid import Result, Setting
from support.processes.processes import wait_for
from support.queue.at_work import working

LEGACY, PRODUCTION = "sketch-legacy-s3", "sketch-production-s3"


@dataclass
class Site:
    """The servers of a sweep."""

    environment: Environment
    connection: Connection

    def run(self, latency: timedelta = timedelta(milliseconds=1)) -> Result:
        return run.run_once(self.environment, self.connection, 60, latency, Setting(8, 10))


@pytest.fixture(scope="module")
def _site() -> Iterator[Site]:
    with start_environment() as environment, connect("sweep", autocommit=True) as connection:
        initialise(connection)
        yield Site(environment, connection)


@pytest.fixture
def site(_site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The servers of a sweep, and the environment that leads to them."""
    for name, value in _site.environment.variables.items():
        monkeypatch.setenv(name, value)
    return _site


def test_a_run_is_correct_and_counts_its_legacy_entries(site: Site) -> None:
    first, again = site.run(), site.run()
    assert (first.problems, again.problems) == ((), ())
    assert first.entries == again.entries
    assert 15 < first.entries < 45
    assert min(first.seconds, again.seconds, first.rate) > 0


def rewrite(bucket: str, body: bytes | None = None) -> Callable[[Any], None]:
    """Return what writes the first object of a bucket again, with the same bytes unless there are others."""

    def write(s3: Any) -> None:
        key = s3.list_objects_v2(Bucket=bucket)["Contents"][0]["Key"]
        same = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        s3.put_object(Bucket=bucket, Key=key, Body=same if body is None else body)

    return write


TAMPERED: dict[str, tuple[str | Callable[[Any], object], str]] = {
    "rewrite production": (rewrite(PRODUCTION, b"else"), "1 production objects are missing or not equal"),
    "add production": (
        lambda s3: s3.put_object(Bucket=PRODUCTION, Key="avatar/stranger.png", Body=b""),
        "1 unexpected production objects: avatar/stranger.png",
    ),
    "rewrite legacy": (rewrite(LEGACY), "1 legacy objects were written, deleted or added"),
    "lose a row": ("delete from public.avatars where id = 1", "1 rows have a wrong key or are missing: "),
    "lose a batch": (
        "delete from rowferry.batch_queue where id = (select min(id) from rowferry.batch_queue)",
        "entries migrated",
    ),
}


@pytest.mark.by_day("lose a row", "rewrite production", "lose a batch")
@pytest.mark.parametrize("name", TAMPERED)
def test_whatever_is_wrong_after_a_run_is_found(name: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker, here in this process, does its work; then something happens that must not."""

    tamper, words = TAMPERED[name]

    def work_badly(environment: Environment, _setting: Setting) -> None:
        with working("migrate") as worker:
            worker.work()
        if isinstance(tamper, str):
            site.connection.execute(tamper.encode())
            return
        with closing(environment.open_s3()) as s3:
            tamper(s3)

    monkeypatch.setattr(run, "_work", work_badly)
    result = site.run(timedelta(0))
    assert len(result.problems) == 1, result.problems
    assert words in result.problems[0]


def test_a_worker_that_takes_too_long_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONGEST_RUN", timedelta(seconds=0.2))
    with pytest.raises(run.RowferryError, match=r"8 in flight and batches of 10 was not done within 0:00:00\.2"):
        site.run()
    wait_for(lambda: not site.connection.execute("select from rowferry.claimed_batches").fetchall())
