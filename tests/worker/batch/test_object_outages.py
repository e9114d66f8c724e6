"""What an S3 server's refusals and absences cost a batch: nothing while the server is busy or away, else an attempt."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rowferry_worker.scheduling import silence
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.paused_migration import state_of
from support.s3.outages import OUTAGES
from support.s3.request_log import LoggedRequest, RequestLog, from_first, logged, writes_of

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def ten(migration: Migration) -> Migration:
    """A migration of ten entries in one batch, which may be tried twice."""
    migration.plan["migration"]["max_attempts"] = 2
    return migration.given(10)


REFUSALS = {
    "SlowDown": (503, "RELEASED", "INIT", 0),
    "ServiceUnavailable": (503, "RELEASED", "INIT", 0),
    "InternalError": (500, "RELEASED", "INIT", 0),
    "InvalidObjectState": (403, "ERROR", "ERROR", 1),
}


@pytest.mark.by_day("ServiceUnavailable")
@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_costs_what_it_is_worth(code: str, ten: Migration, log: RequestLog) -> None:
    http_status, verdict, status, attempts = REFUSALS[code]
    with log.refusing(lambda seen: seen.writes_object, http_status, code):
        ten.work()
    assert ten.verdicts() == [verdict]
    assert (ten.batch()["status"], ten.batch()["attempts"]) == (status, attempts)
    assert ten.batch()["error"].startswith("10 failed (")
    assert ten.production.listing() == {}
    ten.audit(legacy_left=range(1, 11))


@pytest.mark.parametrize("breaks", [False, True])
def test_attempts_at_an_object_of_its_own_misfortune_come_to_an_end(
    ten: Migration, log: RequestLog, breaks: bool
) -> None:
    """The server answers all others, and this one by an error or by a broken connection."""
    third = writes_of(range(3, 4))
    with log.breaking(third) if breaks else log.refusing(third, 500, "InternalError"):
        ten.work_again(times=5)
    assert ten.verdicts() == ["RETRY", "ERROR"]
    assert ten.counts() == {"migrated": 9, "failed": 1}
    ten.audit(legacy_left=[3])


@pytest.fixture(params=["legacy", "production"])
def streamed(request: pytest.FixtureRequest, moto_migration: Migration) -> Iterator[tuple[Migration, RequestLog]]:
    """A migration between two servers, and the log in front of one of them."""
    migration = moto_migration
    with logged(migration.plan["legacy"]["endpoint_url"]) as log:
        migration.plan[request.param]["endpoint_url"] = log.endpoint_url
        migration.given(10)
        yield migration, log


def test_either_server_may_be_away_alone_and_it_costs_nothing(streamed: tuple[Migration, RequestLog]) -> None:
    migration, log = streamed
    with log.breaking(lambda seen: bool(seen.key)):
        migration.work()
    assert migration.verdicts() == ["RELEASED"]
    assert migration.batch()["attempts"] == 0
    assert migration.work_again() == {"migrated": 10}
    migration.audit()


def test_a_server_that_is_away_is_waited_for_and_the_ledger_stays_small(
    ten: Migration, log: RequestLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once a probe has found it away, no batch is claimed until a probe finds it back."""
    for name in ("FAILING_AFTER", "LOOK_EVERY", "PROBE_EVERY"):
        monkeypatch.setattr(silence, name, timedelta(seconds=0.1))
    with ten.at_work() as take_turn:

        def take_due_turn() -> bool:
            ten.make_due()
            return take_turn()

        with log.breaking(lambda _: True):
            wait_for(lambda: take_due_turn() is not None and "server unavailable" in caplog.text)
            before = len(ten.attempts())
            assert [take_due_turn() for _ in range(5)] == [False] * 5
        wait_for(take_due_turn)
    assert ten.verdicts() == ["RELEASED"] * before + ["DONE"]
    assert ten.batch()["attempts"] == 1
    ten.audit()


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
    return migration.given(ENTRIES)


def check_nothing_charged(migration: Migration) -> None:
    (batch,) = migration.batches()
    assert (batch["status"], batch["attempts"]) == ("INIT", 0), batch["error"]
    assert set(migration.verdicts()) == {"RELEASED"}
    assert state_of(migration) == (False, "")


@pytest.mark.must("an S3 server that is down", "500 to writes")
@pytest.mark.by_day("302 to a login page", "500 to writes", "captive portal", "garbage")
@pytest.mark.parametrize("outage", COSTLESS)
def test_an_outage_from_the_first_write_on_costs_nothing(outage: str, twelve: Migration, log: RequestLog) -> None:
    matches, answer = OUTAGES[outage]
    with log.answering(lambda seen: bool(seen.key) and matches(seen), answer):
        twelve.work_again(times=2)
    check_nothing_charged(twelve)
    assert twelve.work_again() == {"migrated": ENTRIES}
    twelve.audit()


def test_the_status_says_what_keeps_batches_from_their_end(migration: Migration, log: RequestLog) -> None:
    migration.given(2, 1).write_plan()
    matches, answer = OUTAGES["302 to a login page"]
    with log.answering(lambda seen: bool(seen.key) and matches(seen), answer):
        migration.work_again(times=3)
    migration.execute(LIVE)
    words = re.compile(r"Waiting since .*: Batches are only put back \(.*HTTP 302.*look at the server: rowferry check.")
    assert any(map(words.fullmatch, run_status(migration).splitlines()))
    migration.work_again()
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
    assert sum(twelve.work_again().values()) == ENTRIES
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
    assert twelve.work_again() == {"migrated": ENTRIES - 1, "missing": 1}
