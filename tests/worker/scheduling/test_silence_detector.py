"""A server that has fallen silent is noticed long before requests are past their deadline; a slow one is not cut."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from rowferry.errors import CutOff
from rowferry.http import event_loop
from rowferry.s3.client import ObjectClient
from rowferry_worker.scheduling import silence
from rowferry_worker.scheduling.silence import SilenceDetector
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.s3.clients import HEAD, WAIT_SECONDS, ask, begin, opened, side_of
from support.s3.request_clock import stop_request_clock
from support.s3.request_log import RequestLog
from support.s3.stand_in import Behaviour, StandIn, answer, hang_up, keep_silent, refuse

LONG_DEADLINE = timedelta(minutes=10)


SHORT = timedelta(seconds=0.3)


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("LEGACY", "PRODUCTION"):
        monkeypatch.setenv(f"ROWFERRY_{side}_ACCESS_KEY_ID", "AK")
        monkeypatch.setenv(f"ROWFERRY_{side}_SECRET_ACCESS_KEY", "SK")


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe soon and often; a server that responds has long, for a machine may be busy."""
    monkeypatch.setattr(silence, "ANSWER_WITHIN", timedelta(seconds=60))
    monkeypatch.setattr(silence, "SILENT_AFTER", SHORT)
    for name in ("LOOK_EVERY", "PROBE_EVERY"):
        monkeypatch.setattr(silence, name, SHORT)


@pytest.fixture
def _hasty(_eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, and who has not answered soon is silent."""
    monkeypatch.setattr(silence, "ANSWER_WITHIN", SHORT)


@pytest.fixture
def watched(_keys: None) -> Iterator[Callable[..., tuple[ObjectClient, SilenceDetector, StandIn]]]:
    """Make a client and the detector that watches it, for a server that responds as told."""
    with ExitStack() as until:

        def make(*behaviours: Behaviour) -> tuple[ObjectClient, SilenceDetector, StandIn]:
            server = until.enter_context(StandIn(*behaviours))
            client = until.enter_context(opened(side_of(server), deadline=LONG_DEADLINE))
            detector = SilenceDetector(client)
            until.callback(event_loop.submit(detector.watch()).cancel)
            return client, detector, server

        yield make


@pytest.mark.usefixtures("_hasty")
def test_a_server_that_responds_to_nothing_is_cut_off_with_all_that_waits(watched: Any) -> None:
    client, _, _ = watched(keep_silent)
    assert isinstance(begin(client, HEAD).result(WAIT_SECONDS).error, CutOff)
    assert isinstance(ask(client, HEAD).error, CutOff)


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("told", [answer(200), refuse(403, "AccessDenied"), refuse(503, "SlowDown")])
def test_a_slow_request_is_waited_for_while_the_server_responds_to_others(told: Behaviour, watched: Any) -> None:
    client, _, server = watched(keep_silent, told)
    slow = begin(client, HEAD)
    wait_for(lambda: len(server.requests) > 3)
    assert not slow.done()


@pytest.mark.usefixtures("_hasty")
def test_a_server_that_responds_again_is_used_again(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _, _ = watched(keep_silent, keep_silent, answer(200))
    begin(client, HEAD).result(WAIT_SECONDS)
    monkeypatch.setattr(silence, "ANSWER_WITHIN", timedelta(seconds=60))
    wait_for(lambda: ask(client, HEAD).error is None)


@pytest.mark.usefixtures("_eager")
def test_a_server_that_ends_every_connection_is_away_until_it_responds(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "FAILING_AFTER", SHORT)
    client, detector, server = watched(hang_up)
    returned: list[bool] = []
    detector._on_return = lambda: returned.append(detector.is_away)
    wait_for(lambda: ask(client, HEAD).error is not None and detector.is_away)
    assert isinstance(ask(client, HEAD).error, CutOff), "nothing is sent in vain"
    server._behaviours = [answer(200)]
    wait_for(lambda: returned)
    assert returned == [False]
    assert ask(client, HEAD).error is None


def test_a_server_is_not_probed_while_nothing_waits_for_it(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)
    monkeypatch.setattr(silence, "time", clock)
    monkeypatch.setattr(silence, "LOOK_EVERY", timedelta(seconds=0.01))
    client, detector, server = watched(answer(200))
    assert ask(client, HEAD).error is None
    clock.move(100)  # within which the detector looks
    assert client.last_response < clock.now - silence.SILENT_AFTER.total_seconds()
    assert client.waiting_since is None
    assert not detector.is_silent()
    assert len(server.requests) == 1


@pytest.mark.must("a network that is cut")
def test_a_worker_cut_off_from_s3_gives_its_batch_back_at_no_cost(
    migration: Migration, log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.given(8, 4)
    with migration.at_work() as take_turn:
        assert take_turn()
        with log.holding(lambda _: True), monkeypatch.context() as hasty:
            for name in ("SILENT_AFTER", "ANSWER_WITHIN", "PROBE_EVERY"):
                hasty.setattr(silence, name, SHORT)
            assert take_turn()
    first, second = migration.batches()
    assert (first["status"], second["status"], second["attempts"]) == ("DONE", "INIT", 0)
    assert "CutOff" not in second["error"]
    assert "Silent" in second["error"]
    migration.work_again()
    migration.audit()
