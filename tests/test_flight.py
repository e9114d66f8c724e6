"""Many journeys at once: never more than the limit, and each of them ends exactly once, whatever happens."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectError, Withdrawn
from rowferry.s3.operations import Request, head_object
from rowferry.s3.responses import Answer
from rowferry_worker.objects.journey import Copied, Journey, ask
from rowferry_worker.objects.scheduler import Flight

AT_ONCE = timedelta(0)
SOON = timedelta(seconds=100)
COPIED = Copied(Outcome.MIGRATED)
OK = Answer(200)

End = Literal["well", "error", "fault"]


@dataclass
class Sky:
    """Where the requests of journeys wait for their answers; tells how many journeys are under way."""

    pending: list[tuple[Request, Callable[[Answer], None]]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    turn: Lock = field(default_factory=Lock)

    def send(self, request: Request, on_answer: Callable[[Answer], None]) -> None:
        self.pending.append((request, on_answer))

    def answer(self, index: int = 0) -> None:
        """Answer one request that waits."""
        _, on_answer = self.pending.pop(index)
        on_answer(OK)

    def answer_all(self) -> None:
        while self.pending:
            self.answer()

    def journey(self, number: int, steps: int = 1, end: End = "well") -> Journey:
        with self.turn:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.begun.append(number)
        try:
            for _ in range(steps):
                yield from ask(head_object("legacy", f"image/{number}"))
            if end == "error":
                raise AccessDenied("AccessDenied", str(number))
            if end == "fault":
                raise ZeroDivisionError(str(number))
            return COPIED
        finally:
            with self.turn:
                self.under_way -= 1
                self.ended.append(number)


JOURNEYS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["well", "well", "error"])), max_size=25)


@settings(deadline=None)
@given(st.lists(JOURNEYS, min_size=1, max_size=3), st.integers(1, 9), st.data())
def test_in_any_order_of_answers_each_journey_ends_exactly_once(
    loads: list[list[tuple[int, End]]], limit: int, data: st.DataObject
) -> None:
    sky, flight = Sky(), Flight(limit)
    launched = []
    for load in loads:
        journeys = [sky.journey(number, steps, end) for number, (steps, end) in enumerate(load)]
        launched.append(flight.launch(sky.send, journeys))
        for _ in range(data.draw(st.integers(0, len(sky.pending)))):
            sky.answer(data.draw(st.integers(0, len(sky.pending) - 1)))
    while sky.pending:
        sky.answer(data.draw(st.integers(0, len(sky.pending) - 1)))
    assert sky.most <= limit
    assert sky.under_way == 0
    for load, done in zip(loads, launched, strict=True):
        assert done.wait(AT_ONCE)
        assert len(done.ends) == len(load)
        for (_, wanted), end in zip(load, done.ends, strict=True):
            assert end == COPIED if wanted == "well" else isinstance(end, AccessDenied)
    assert len(sky.ended) == len(sky.begun) == sum(map(len, loads))


def test_the_limit_is_used_to_the_full() -> None:
    sky, flight = Sky(), Flight(3)
    flight.launch(sky.send, [sky.journey(number) for number in range(12)])
    assert len(sky.pending) == 3
    sky.answer()
    assert len(sky.pending) == 3
    sky.answer_all()
    assert sky.most == 3


def test_journeys_begin_in_the_order_of_their_launch() -> None:
    sky, flight = Sky(), Flight(2)
    flight.launch(sky.send, [sky.journey(number) for number in range(4)])
    flight.launch(sky.send, [sky.journey(number) for number in range(4, 8)])
    sky.answer_all()
    assert sky.begun == list(range(8))


def test_a_load_without_journeys_is_done_at_once() -> None:
    assert Flight(1).launch(Sky().send, []).wait(AT_ONCE)


def test_a_load_is_not_done_before_its_last_journey() -> None:
    sky, flight = Sky(), Flight(9)
    load = flight.launch(sky.send, [sky.journey(number) for number in range(3)])
    sky.answer()
    sky.answer()
    assert not load.wait(AT_ONCE)
    sky.answer()
    assert load.wait(AT_ONCE)


def test_journeys_that_need_no_request_end_without_one() -> None:
    """Thousands of them: none begins from within another, so no stack grows."""
    sky, flight = Sky(), Flight(1)
    load = flight.launch(sky.send, [sky.journey(number, steps=0) for number in range(5000)])
    assert load.wait(AT_ONCE)
    assert load.ends == [COPIED] * 5000


def test_an_error_ends_its_journey_and_no_other() -> None:
    sky, flight = Sky(), Flight(2)
    load = flight.launch(sky.send, [sky.journey(0), sky.journey(1, end="error"), sky.journey(2)])
    sky.answer_all()
    assert load.wait(AT_ONCE)
    assert [str(end) if isinstance(end, ObjectError) else end for end in load.ends] == [
        COPIED,
        "AccessDenied: 1",
        COPIED,
    ]


def test_the_error_of_a_journey_holds_nothing_of_what_it_has_read() -> None:
    sky, flight = Sky(), Flight(3)
    load = flight.launch(sky.send, [sky.journey(0, 1, "error")])
    while sky.pending:
        sky.answer(0)
    (error,) = load.ends
    assert isinstance(error, AccessDenied)
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


def test_a_fault_of_ours_is_raised_to_whoever_waits_and_only_to_them() -> None:
    """Its batch must not trust its results; the other batches of the process go on."""
    sky, flight = Sky(), Flight(4)
    faulty = flight.launch(sky.send, [sky.journey(0), sky.journey(1, end="fault"), sky.journey(2)])
    other = flight.launch(sky.send, [sky.journey(number) for number in range(3, 9)])
    sky.answer_all()
    with pytest.raises(ZeroDivisionError):
        faulty.wait(AT_ONCE)
    assert other.wait(AT_ONCE)
    assert other.ends == [COPIED] * 6


def test_what_is_withdrawn_never_begins_and_what_has_begun_goes_on() -> None:
    sky, flight = Sky(), Flight(2)
    load = flight.launch(sky.send, [sky.journey(number) for number in range(5)])
    flight.withdraw(load)
    assert not load.wait(AT_ONCE)
    sky.answer_all()
    assert load.wait(AT_ONCE)
    assert load.ends[:2] == [COPIED, COPIED]
    assert all(isinstance(end, Withdrawn) for end in load.ends[2:])
    assert sky.begun == [0, 1]


def test_a_withdrawal_leaves_the_loads_of_others_alone() -> None:
    sky, flight = Sky(), Flight(1)
    mine = flight.launch(sky.send, [sky.journey(number) for number in range(3)])
    other = flight.launch(sky.send, [sky.journey(number) for number in range(3, 6)])
    flight.withdraw(mine)
    sky.answer_all()
    assert mine.wait(AT_ONCE)
    assert other.wait(AT_ONCE)
    assert sky.begun == [0, 3, 4, 5]


def test_a_load_that_is_withdrawn_before_it_begins_is_done() -> None:
    sky, flight = Sky(), Flight(1)
    flight.launch(sky.send, [sky.journey(0)])
    load = flight.launch(sky.send, [sky.journey(1)])
    flight.withdraw(load)
    assert load.wait(AT_ONCE)


def test_answers_from_many_threads_lose_no_journey() -> None:
    sky, flight = Sky(), Flight(8)
    with ThreadPoolExecutor(6) as pool:

        def send(_request: Request, on_answer: Callable[[Answer], None]) -> None:
            pool.submit(on_answer, OK)

        loads = [flight.launch(send, [sky.journey(n, steps=2) for n in range(400)]) for _ in range(3)]
        assert all(load.wait(SOON) for load in loads)
    assert sky.most <= 8
    assert [load.ends for load in loads] == [[COPIED] * 400] * 3
