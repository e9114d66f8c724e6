"""What must not be left behind is started without Ctrl-C in between."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from rowferry.interrupts import HELD, hold_interrupts


@pytest.mark.parametrize("number", HELD)
def test_a_signal_takes_effect_at_the_end_of_the_block(number: signal.Signals) -> None:
    reached: list[bool] = []

    def start() -> None:
        with hold_interrupts():
            signal.raise_signal(number)
            reached.append(True)

    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert reached == [True]


def test_without_a_signal_nothing_happens_and_another_thread_has_nothing_to_hold_back() -> None:
    def read() -> list[object]:
        return [signal.getsignal(number) for number in HELD]

    def start() -> list[object]:
        with hold_interrupts():
            return read()

    before = read()
    assert start() != before
    assert read() == before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(start).result(10) == before
