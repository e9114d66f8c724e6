"""A run of a sweep checks every end, takes as long as its latency asks for, and leaves no worker behind."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from queue_conformance.worker import working
from rowferry_lab.servers import server_process
from rowferry_lab.servers.server_process import post_guard
from rowferry_lab.sweep import run
from rowferry_lab.sweep.grid import Grid, Setting, Trial
from rowferry_lab.sweep.run import SweepEnvironment, bound_run, open_environment, run_trial
from support.processes.processes import is_running, wait_for

LEGACY, PRODUCTION = "sketch-legacy-s3", "sketch-production-s3"


def make_grid(**more: Any) -> Grid:
    latency = timedelta(milliseconds=1)
    settings = {"repetitions": 1, "entries": 60, "seed": 3, "latency": latency, **more}
    return Grid(batch_sizes=(10,), parallels=(8,), **settings)


@pytest.fixture(scope="module")
def _environment() -> Iterator[SweepEnvironment]:
    with open_environment() as environment:
        yield environment


@pytest.fixture
def environment(_environment: SweepEnvironment, monkeypatch: pytest.MonkeyPatch) -> SweepEnvironment:
    """The servers of a sweep, and the environment that leads to them."""
    for name, value in _environment.base.variables.items():
        monkeypatch.setenv(name, value)
    return _environment


def test_a_run_is_correct_and_counts_its_legacy_entries(environment: SweepEnvironment) -> None:
    grid = make_grid()
    first, again = (run_trial(environment, grid, Trial(number, number, Setting(8, 10))) for number in (1, 2))
    assert (first.problems, again.problems) == ((), ())
    assert first.entries == again.entries
    assert 15 < first.entries < 45
    assert min(first.duration, first.worker_cpu, first.server_cpu, again.duration) > timedelta(0)


def rewrite_production(s3: Any, environment: SweepEnvironment) -> None:
    (row,) = environment.connection.execute("select min(path) as key from public.avatars")
    key = row["key"]
    s3.put_object(Bucket=PRODUCTION, Key=key, Body=b"something else", ContentType="image/png")


def lose_the_headers(s3: Any, environment: SweepEnvironment) -> None:
    for item in s3.list_objects_v2(Bucket=PRODUCTION)["Contents"]:
        found = s3.get_object(Bucket=PRODUCTION, Key=item["Key"])
        s3.put_object(Bucket=PRODUCTION, Key=item["Key"], Body=found["Body"].read())


def lose_the_tags(s3: Any, environment: SweepEnvironment) -> None:
    """Write an object with tags again without them, or with others."""
    for item in s3.list_objects_v2(Bucket=PRODUCTION)["Contents"]:
        found = s3.get_object(Bucket=PRODUCTION, Key=item["Key"])
        if s3.get_object_tagging(Bucket=PRODUCTION, Key=item["Key"])["TagSet"]:
            said = {name: found[name] for name in ("ContentType", "CacheControl", "Metadata") if name in found}
            tagging = "album=9&kind=avatar"
            s3.put_object(Bucket=PRODUCTION, Key=item["Key"], Body=found["Body"].read(), Tagging=tagging, **said)
            return


def delete_production(s3: Any, environment: SweepEnvironment) -> None:
    s3.delete_object(Bucket=PRODUCTION, Key=s3.list_objects_v2(Bucket=PRODUCTION)["Contents"][0]["Key"])


def add_production(s3: Any, environment: SweepEnvironment) -> None:
    s3.put_object(Bucket=PRODUCTION, Key="avatar/stranger.png", Body=b"")


def delete_legacy(s3: Any, environment: SweepEnvironment) -> None:
    s3.delete_object(Bucket=LEGACY, Key=s3.list_objects_v2(Bucket=LEGACY)["Contents"][0]["Key"])


def rewrite_legacy_with_the_same_bytes(s3: Any, environment: SweepEnvironment) -> None:
    key = s3.list_objects_v2(Bucket=LEGACY)["Contents"][0]["Key"]
    s3.put_object(Bucket=LEGACY, Key=key, Body=s3.get_object(Bucket=LEGACY, Key=key)["Body"].read())


def put_a_row_back(s3: Any, environment: SweepEnvironment) -> None:
    environment.connection.execute("update public.avatars set path = 'image/avatar-1.png' where id = 1")


def lose_a_row(s3: Any, environment: SweepEnvironment) -> None:
    environment.connection.execute("delete from public.avatars where id = 1")


def lose_a_batch(s3: Any, environment: SweepEnvironment) -> None:
    environment.connection.execute(
        "delete from rowferry.batch_queue where id = (select min(id) from rowferry.batch_queue)"
    )


@pytest.mark.by_day("lose_a_row*", "rewrite_production*", "lose_a_batch*")
@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (rewrite_production, "1 production objects are missing or not equal"),
        (lose_the_headers, "production objects are missing or not equal"),
        (lose_the_tags, "1 production objects are missing or not equal"),
        (delete_production, "1 production objects are missing or not equal"),
        (add_production, "1 unexpected production objects: avatar/stranger.png"),
        (delete_legacy, "1 legacy objects were written, deleted or added"),
        (rewrite_legacy_with_the_same_bytes, "1 legacy objects were written, deleted or added"),
        (put_a_row_back, "1 rows have a wrong key: image/avatar-1.png"),
        (lose_a_row, "59 rows instead of 60"),
        (lose_a_batch, "entries migrated"),
    ],
)
def test_whatever_is_wrong_after_a_run_is_found(
    tamper: Callable[[Any, SweepEnvironment], None],
    words: str,
    environment: SweepEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker, here in this process, does its work; then something happens that must not."""

    def work_badly(*_: object) -> timedelta:
        with working("migrate") as worker:
            worker.work()
        environment.server.set_latency(timedelta(0))
        s3 = environment.base.open_s3()
        tamper(s3, environment)
        s3.close()
        return timedelta(0)

    monkeypatch.setattr(run, "_work", work_badly)
    result = run_trial(environment, make_grid(), Trial(1, 1, Setting(8, 10)))
    assert len(result.problems) == 1, result.problems
    assert words in result.problems[0]


def test_a_worker_that_takes_too_long_is_ended(environment: SweepEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_LEAST", timedelta(seconds=0.2))
    monkeypatch.setattr(run, "TIME_FACTOR", 0)
    with pytest.raises(run.RowferryError, match=r"8 in flight and batches of 10 was not done within 0 s"):
        run_trial(environment, make_grid(), Trial(1, 1, Setting(8, 10)))
    wait_for(lambda: not environment.connection.execute("select from rowferry.claimed_batches").fetchall())


def test_a_run_may_take_as_long_as_its_latency_asks_for() -> None:
    slow = make_grid(latency=timedelta(seconds=10), entries=1000)
    assert bound_run(slow, Setting(1, 10)) > timedelta(seconds=10) * 1000
    assert bound_run(make_grid(), Setting(10, 10)) < timedelta(minutes=5)


def fail_to_guard(pid: int, *_: object) -> None:
    raise OSError("no process can be started any more")


def interrupt_before_guarding(pid: int, *more: Any) -> subprocess.Popen[bytes]:
    """Press Ctrl-C when the worker has started and the sweep does not know of it yet."""
    signal.raise_signal(signal.SIGINT)
    return post_guard(pid, *more)


@pytest.mark.parametrize(
    ("happens", "error"), [(fail_to_guard, OSError), (interrupt_before_guarding, KeyboardInterrupt)]
)
def test_a_worker_is_ended_whatever_happens_while_it_starts(
    happens: Callable[..., Any],
    error: type[BaseException],
    environment: SweepEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    def note(pid: int, *more: Any) -> Any:
        started.append(pid)
        return happens(pid, *more)

    monkeypatch.setattr(server_process, "post_guard", note)
    with pytest.raises(error):
        run_trial(environment, make_grid(), Trial(1, 1, Setting(8, 10)))
    assert len(started) == 1
    assert not is_running(started[0])
