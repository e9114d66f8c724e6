"""What an S3 server's refusals and absences cost a batch: nothing while the server is busy or away, else an attempt."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from rowferry_worker.scheduling import silence
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.s3.buckets import Buckets
from support.s3.request_log import LoggedRequest, RequestLog, logged, writes_of

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def ten(migration: Migration) -> Migration:
    """A migration of ten entries in one batch, which may be tried twice."""
    migration.plan["migration"]["max_attempts"] = 2
    migration.given(10)
    return migration


def every_write(seen: LoggedRequest) -> bool:
    return seen.writes_object


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
    with log.refusing(every_write, http_status, code):
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
        for _ in range(5):
            ten.work_again()
    assert ten.verdicts() == ["RETRY", "ERROR"]
    assert ten.counts() == {"migrated": 9, "failed": 1}
    ten.audit(legacy_left=[3])


@pytest.fixture(params=["legacy", "production"])
def streamed(
    request: pytest.FixtureRequest, moto_buckets: Buckets, make_migration: Callable[..., Migration]
) -> Iterator[tuple[Migration, RequestLog]]:
    """A migration between two servers, and the log in front of one of them."""
    migration = make_migration(moto_buckets, moto_buckets)
    with logged(moto_buckets.server.endpoint_url) as log:
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
