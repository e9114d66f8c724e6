"""An outage is an outage, whatever the server says: nothing is charged, and work goes on once objects succeed again."""

import re

import pytest

from support.entries.migration import Migration
from support.queue.paused_migration import state_of
from support.s3.outages import OUTAGES
from support.s3.request_log import LoggedRequest, RequestLog, from_first, writes_of

pytestmark = pytest.mark.usefixtures("no_pauses")

ENTRIES = 12
LIVE = """
insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues)
values ('host:7:x', 'host', 7, '1', 1, 16, '{migrate}')
"""


COSTLESS = [name for name in OUTAGES if name != "404 without a body"]
"""An object that is not there has the same response: only a process that probes the server tells one from the other."""


@pytest.fixture
def twelve(migration: Migration) -> Migration:
    """Twelve entries in one batch, of which the last attempt is the first."""
    migration.plan["migration"]["max_attempts"] = 1
    migration.given(ENTRIES)
    return migration


def check_nothing_charged(migration: Migration) -> None:
    (batch,) = migration.batches()
    assert (batch["status"], batch["attempts"]) == ("INIT", 0), batch["error"]
    assert set(migration.verdicts()) == {"RELEASED"}
    assert state_of(migration) == (False, "")


def end_outage(migration: Migration) -> None:
    migration.work_again()


@pytest.mark.must("an S3 server that is down", "500 to writes")
@pytest.mark.by_day("302 to a login page", "500 to writes", "captive portal", "garbage")
@pytest.mark.parametrize("outage", COSTLESS)
def test_an_outage_from_the_first_write_on_costs_nothing(outage: str, twelve: Migration, log: RequestLog) -> None:
    matches, answer = OUTAGES[outage]
    with log.answering(lambda seen: bool(seen.key) and matches(seen), answer):
        for _ in range(2):
            twelve.work_again()
    check_nothing_charged(twelve)
    end_outage(twelve)
    assert twelve.counts() == {"migrated": ENTRIES}
    twelve.audit()


def test_the_status_says_what_keeps_batches_from_their_end(migration: Migration, log: RequestLog) -> None:
    migration.given(2, 1)
    migration.write_plan()
    matches, answer = OUTAGES["302 to a login page"]
    with log.answering(lambda seen: bool(seen.key) and matches(seen), answer):
        for _ in range(3):
            migration.work_again()
    migration.execute(LIVE)
    words = re.compile(r"Waiting since .*: Batches are only put back \(.*HTTP 302.*look at the server: rowferry check.")
    assert any(map(words.fullmatch, run_status(migration).splitlines()))
    end_outage(migration)
    assert "put back" not in run_status(migration)


def run_status(migration: Migration) -> str:
    done = migration.run("status", "--no-objects")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.by_day("405 to writes", "502 of a balancer")
@pytest.mark.parametrize("outage", COSTLESS)
def test_an_outage_from_the_middle_of_a_batch_on_costs_nothing(outage: str, twelve: Migration, log: RequestLog) -> None:
    matches, answer = OUTAGES[outage]
    has_begun = from_first(writes_of(range(6, ENTRIES + 1)))
    with log.answering(lambda seen: has_begun(seen) and bool(seen.key) and matches(seen), answer):
        twelve.work(parallel=1)
    check_nothing_charged(twelve)
    end_outage(twelve)
    assert sum(twelve.counts().values()) == ENTRIES
    assert set(twelve.counts()) <= {"migrated", "kept"}
    twelve.audit()


@pytest.mark.by_day("400 of a balancer")
@pytest.mark.parametrize("outage", COSTLESS)
def test_a_missing_object_beside_an_outage_changes_nothing(outage: str, twelve: Migration, log: RequestLog) -> None:
    matches, answer = OUTAGES[outage]
    missing = twelve.legacy.listing().popitem()[0]
    twelve.legacy.delete(missing)
    number = missing.split("/")[1]

    def is_out(seen: LoggedRequest) -> bool:
        return bool(seen.key) and matches(seen) and number not in f"{seen.key} {seen.headers}"

    with log.answering(is_out, answer):
        twelve.work()
    check_nothing_charged(twelve)
    end_outage(twelve)
    assert twelve.counts() == {"migrated": ENTRIES - 1, "missing": 1}
