"""A server that has fallen silent is noticed long before requests are past their deadline; a slow one is not cut."""

import queue
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import pytest

from clients import HEAD, WAIT_SECONDS, Result, ask, begin, opened, side_of
from migration import Migration
from processes import wait_for
from request_log import RequestLog
from rowferry.errors import CutOff
from rowferry.s3.client import ObjectClient
from rowferry.s3.side_client import ask_bucket
from rowferry_worker.objects import outage
from rowferry_worker.objects.outage import Lookout
from stand_in import Behaviour, StandIn, answer, keep_silent, refuse

LONG_DEADLINE = timedelta(minutes=10)


SHORT = timedelta(seconds=0.3)


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("LEGACY", "PRODUCTION"):
        monkeypatch.setenv(f"ROWFERRY_{side}_ACCESS_KEY_ID", "AK")
        monkeypatch.setenv(f"ROWFERRY_{side}_SECRET_ACCESS_KEY", "SK")


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask soon and often; whoever answers at all has the usual time for it, for a machine may be busy."""
    monkeypatch.setattr(outage, "SILENT_AFTER", SHORT)
    monkeypatch.setattr(outage, "ASK_EVERY", SHORT)


@pytest.fixture
def _hasty(_eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, and who has not answered soon is silent."""
    monkeypatch.setattr(outage, "ANSWER_WITHIN", SHORT)


@pytest.fixture
def watched(_keys: None) -> Iterator[Callable[..., tuple[ObjectClient, Lookout, StandIn]]]:
    """Make a client, with a request to be long about, and a lookout for a server that answers as told."""
    from contextlib import ExitStack, closing

    with ExitStack() as until:

        def make(*behaviours: Behaviour) -> tuple[ObjectClient, Lookout, StandIn]:
            server = until.enter_context(StandIn(*behaviours))
            side = side_of(server)
            client = until.enter_context(opened(side, deadline=LONG_DEADLINE))
            return client, until.enter_context(closing(Lookout(client, partial(ask_bucket, side)))), server

        yield make


def send(client: ObjectClient) -> queue.SimpleQueue[Result]:
    answers: queue.SimpleQueue[Result] = queue.SimpleQueue()
    begin(client, HEAD, answers.put)
    return answers


def look_until(condition: Callable[[], object], looking: Lookout) -> None:
    def look() -> bool:
        looking.look()
        return bool(condition())

    wait_for(look)


@pytest.mark.usefixtures("_hasty")
def test_a_server_that_answers_nobody_is_cut_off_with_all_that_waits(watched) -> None:
    client, looking, _ = watched(keep_silent)
    answers = send(client)
    look_until(lambda: not answers.empty(), looking)
    assert isinstance(answers.get(timeout=WAIT_SECONDS).error, CutOff)
    assert isinstance(ask(client, HEAD).error, CutOff)


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("told", [answer(200), refuse(403, "AccessDenied"), refuse(503, "SlowDown")])
def test_a_slow_request_is_waited_for_while_the_server_answers_anybody(told: Behaviour, watched) -> None:
    client, looking, server = watched(keep_silent, told)
    answers = send(client)
    look_until(lambda: len(server.requests) > 3, looking)
    assert answers.empty()


@pytest.mark.usefixtures("_hasty")
def test_a_server_that_answers_again_is_used_again(watched) -> None:
    client, looking, _ = watched(keep_silent, keep_silent, answer(200))
    answers = send(client)
    look_until(lambda: not answers.empty(), looking)
    wait_for(lambda: ask(client, HEAD).error is None)


@pytest.mark.usefixtures("_eager")
def test_a_server_is_not_asked_while_nothing_waits_for_it(watched) -> None:
    client, looking, server = watched(answer(200))
    assert ask(client, HEAD).error is None
    for _ in range(3):
        looking.look()
    assert client.waiting_since is None
    assert len(server.requests) == 1


def test_a_worker_cut_off_from_s3_gives_its_batch_back_at_no_cost(
    logged_migration: Migration, log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = logged_migration
    migration.fill(8)
    migration.enqueue(batch_size=4)
    with migration.at_work() as take_turn:
        assert take_turn()
        with log.holding(lambda _: True), monkeypatch.context() as hasty:
            for name in ("SILENT_AFTER", "ANSWER_WITHIN", "ASK_EVERY"):
                hasty.setattr(outage, name, SHORT)
            assert take_turn()
    first, second = migration.batches()
    assert (first["status"], second["status"], second["attempts"]) == ("DONE", "INIT", 0)
    assert "CutOff" not in second["error"]
    assert "Silent" in second["error"]
    migration.make_due()
    migration.work()
    migration.audit()
