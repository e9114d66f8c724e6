"""The clock of requests in the hands of a test: deadlines pass when the test says so, however slow the machine is."""

import asyncio

import pytest

from rowferry.http import deadlines, event_loop
from rowferry.s3 import client
from support.processes.clock import Clock

SCAN_SECONDS = 0.01


class RequestClock(Clock):
    """What the deadlines of requests go by."""

    def move(self, seconds: float) -> None:
        """Let so much time pass, and return once all requests were held against it. Not on the event loop."""
        event_loop.run(self.moved(seconds))

    async def moved(self, seconds: float) -> None:
        """Do the same on the event loop."""
        self.now += seconds
        await asyncio.sleep(2 * SCAN_SECONDS)  # a scan that is due sooner comes first


def stop_request_clock(monkeypatch: pytest.MonkeyPatch) -> RequestClock:
    """Put a clock that stands still in place of that of all requests that begin from now on."""
    clock = RequestClock()
    monkeypatch.setattr(deadlines, "time", clock)
    monkeypatch.setattr(client, "time", clock)
    monkeypatch.setattr(deadlines, "SCAN_SECONDS", SCAN_SECONDS)
    return clock
