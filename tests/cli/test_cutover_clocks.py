"""`rowferry cutover` between servers whose clocks differ: nobody's write is lost, and what cannot be told is named."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from support.entries.files import add_file, cut_over, make_table, now, read_production, replace_file
from support.entries.migration import Migration
from support.processes.cli import well
from support.processes.processes import wait_for
from support.queue.workers_here import run_here
from support.s3.buckets import Buckets
from torture.switching.wrong_clock import WrongClock, WrongTimesOfObjects

CLOCKS = re.compile(r"Clocks: the production server's clock is (?P<seconds>\S+) s .* give or take (?P<half>\S+) s")
OFF_SECONDS = 5
APART_SECONDS = 4
"""Between two writes that are in a clear order: the times of objects are whole seconds, and clocks are measured."""


@pytest.fixture(
    params=[
        pytest.param((WrongClock, OFF_SECONDS), id="ahead"),
        pytest.param((WrongTimesOfObjects, -OFF_SECONDS), id="behind-a-proxy"),
        pytest.param((WrongClock, -OFF_SECONDS), id="behind", marks=pytest.mark.soak),
        pytest.param((WrongTimesOfObjects, OFF_SECONDS), id="ahead-of-a-proxy", marks=pytest.mark.soak),
    ]
)
def staying(
    request: pytest.FixtureRequest, moto_buckets: Buckets, make_migration: Callable[..., Migration]
) -> Iterator[Migration]:
    """Five files, and a production server whose clock is five seconds off."""
    kind, seconds = request.param
    migration = make_migration(moto_buckets, moto_buckets)
    with kind(moto_buckets.server.endpoint_url, timedelta(seconds=seconds)).running() as shifted:
        migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
        made = make_table(migration, "timestamptz")
        for number in range(1, 6):
            add_file(made, number)
        made.write_plan()
        yield made


def touch(migration: Migration, number: int) -> None:
    migration.execute("update public.files set updated_at = %s where id = %s", (now(), number))


def test_no_write_of_either_version_is_lost(staying: Migration) -> None:
    """Instances flip one after the other: the last write counts, and what nobody can put in order is left alone."""

    def write_together() -> bool:
        """Write an object to both sides, and return whether both were stamped with the same second."""
        staying.production.put("f3", b"new version's, with it")
        staying.legacy.put("f3", b"old version's, with it")
        touch(staying, 3)
        return staying.production.head("f3")["LastModified"] == staying.legacy.head("f3")["LastModified"]

    done = well(cut_over(staying))
    told = CLOCKS.search(done.stdout)
    assert told, done.stdout
    assert abs(float(told["seconds"]) - OFF_SECONDS) <= float(told["half"]) + 0.1, done.stdout  # both are rounded

    replace_file(staying, 1, "old version's")
    staying.production.put("f2", b"new version's")
    wait_for(write_together)
    time.sleep(APART_SECONDS)
    staying.production.put("f1", b"new version's, later")
    replace_file(staying, 2, "old version's, later")
    touch(staying, 1)

    done = cut_over(staying, "--finish")
    assert done.returncode == 1, done.stdout + done.stderr
    expected = ["new version's, later", "old version's, later", "new version's, with it", "v1", "v1"]
    assert read_production(staying, 5) == expected
    named = {failure["entry_id"]: failure["reason"] for failure in staying.failures()}
    assert named.keys() == {"3"}
    assert set(named.values()) <= {"written together", "WrittenTogether"}


def test_what_is_rewritten_during_a_first_pass_is_not_taken_for_the_applications(staying: Migration) -> None:
    """`--finish` straight after `migrate`, which the page does not tell anybody to do."""
    assert run_here(staying.folder, "migrate", "--yes").returncode == 0
    for number in range(1, 6):
        staying.legacy.put(f"f{number}", b"v2")
        touch(staying, number)
    well(cut_over(staying, "--finish"))
    assert read_production(staying, 5) == ["v2"] * 5


def test_going_back_leaves_no_lasting_conflict(staying: Migration) -> None:
    """What the new version wrote before it went back is not what the application reads now."""
    assert cut_over(staying).returncode == 0
    time.sleep(APART_SECONDS)
    staying.production.put("f4", b"new version's")
    assert cut_over(staying, "--finish").returncode == 0
    assert read_production(staying, 5)[3] == "new version's"
    assert cut_over(staying, "--switched-back").returncode == 0
    touch(staying, 4)
    assert "What the application wrote to" in well(cut_over(staying)).stdout
    assert read_production(staying, 5) == ["v1"] * 5
    assert cut_over(staying, "--finish").returncode == 0
