"""A request is sent again where a pause may help, and each try is observed."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any, cast

import pytest

from rowferry.errors import (
    AccessDenied,
    ObjectError,
    ObjectNotFound,
    PreconditionFailed,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry.s3.operations import Request, complete_multipart_upload, copy_object, head_object, put_object
from rowferry.s3.responses import Answer
from rowferry_worker.objects import patience
from rowferry_worker.objects.alarm import Alarm
from rowferry_worker.objects.patience import TRIES, Patience

REQUEST = head_object("production", "key")
FINE = Answer(200)
DEADLINE_SECONDS = 100


class Scripted:
    """Sends by giving the next of some answers, from a thread of its own as the real client does."""

    def __init__(self, *errors: ObjectError | None) -> None:
        self._answers = [Answer(0, error=error) if error else FINE for error in errors]
        self.sent = 0

    def send(self, request: Request, on_answer: Callable[[Answer], None]) -> None:
        self.sent += 1
        Thread(target=on_answer, args=(self._answers.pop(0),)).start()


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BASE", timedelta(milliseconds=1))


def send(server: Scripted, request: Request = REQUEST, **more: Any) -> tuple[Answer, list[bool]]:
    """Send a request patiently; return the last answer, and for each try whether it was to be sent again."""
    observed: list[bool] = []
    answers: list[Answer] = []
    done = Event()

    def observe(request: Request, answer: Answer, seconds: float, *, again: bool) -> None:
        assert seconds >= 0
        observed.append(again)

    def finish(answer: Answer) -> None:
        answers.append(answer)
        done.set()

    Patience(observe).send(server.send, request, finish, **more)
    assert done.wait(DEADLINE_SECONDS)
    (answer,) = answers
    return answer, observed


@pytest.mark.parametrize("error_class", [Throttled, ServerFault, Unreachable])
def test_what_may_pass_is_tried_again_until_it_passes(error_class: type[ObjectError]) -> None:
    server = Scripted(error_class("Busy", ""), error_class("Busy", ""), None)
    answer, observed = send(server)
    assert answer is FINE
    assert observed == [True, True, False]


@pytest.mark.parametrize("error_class", [ObjectNotFound, PreconditionFailed, AccessDenied, TimedOut])
def test_what_will_not_change_is_asked_once(error_class: type[ObjectError]) -> None:
    server = Scripted(error_class("No", ""))
    answer, observed = send(server)
    assert isinstance(answer.error, error_class)
    assert (server.sent, observed) == (1, [False])


@pytest.mark.parametrize("error_class", [ServerFault, Unreachable, Throttled])
@pytest.mark.parametrize(
    ("request_", "tries"),
    [
        (complete_multipart_upload("key", upload_id="u", parts=[(1, "e")], if_none_match=True), 1),
        (put_object("key", b"", if_none_match=False), 1),
        (put_object("key", b"", if_none_match=True), 2),
        (copy_object("key", source_bucket="b", source_key="a", if_none_match=False), 1),
        (copy_object("key", source_bucket="b", source_key="a", if_none_match=True), 2),
    ],
    ids=["completion", "put", "put under a condition", "copy", "copy under a condition"],
)
def test_what_may_overwrite_is_not_sent_again_without_a_look(
    request_: Request, tries: int, error_class: type[ObjectError]
) -> None:
    server = Scripted(error_class("Doubt", ""), None)
    _, observed = send(server, request_)
    assert server.sent == tries
    assert observed[0], "there was a pause"


def test_patience_ends() -> None:
    server = Scripted(*[Throttled("SlowDown", "")] * (TRIES + 1))
    answer, observed = send(server)
    assert isinstance(answer.error, Throttled)
    assert server.sent == TRIES
    assert observed == [True] * (TRIES - 1) + [False]


def test_each_try_takes_its_turn_under_a_bound() -> None:
    turns: list[Request] = []

    def reserve(request: Request) -> timedelta:
        turns.append(request)
        return timedelta(milliseconds=1)

    answer, _ = send(Scripted(Throttled("SlowDown", ""), None), reserve=reserve)
    assert answer is FINE
    assert turns == [REQUEST, REQUEST]


def test_the_alarm_calls_in_the_order_of_time_and_outlives_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    alarm, called, done, begin = Alarm(), [], Event(), Event()
    hold = cast("Any", lambda: begin.wait(DEADLINE_SECONDS))
    alarm.call_later(timedelta(0), hold)  # nothing is called before all are known
    start = time.monotonic()
    for milliseconds, function in (
        (30, done.set),
        (20, lambda: called.append("second")),
        (10, lambda: called.append("first")),
        (1, lambda: called.remove("nothing")),
    ):
        alarm.call_later(timedelta(seconds=start - time.monotonic(), milliseconds=milliseconds), function)
    begin.set()
    assert done.wait(DEADLINE_SECONDS)
    assert called == ["first", "second"]
    assert "what was to be done later failed" in caplog.text
