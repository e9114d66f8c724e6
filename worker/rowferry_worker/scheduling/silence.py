"""Notices that a server is away, silent or unreachable, and when it is back: the worker then need not guess."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import timedelta

from rowferry.errors import CutOff, ObjectError, TimedOut, Unreachable
from rowferry.s3.client import ObjectClient
from rowferry.s3.retry import jittered

_log = logging.getLogger(__name__)

SILENT_AFTER = timedelta(seconds=8)
"""Without a response to anything for so long, a server is probed."""
ANSWER_WITHIN = timedelta(seconds=8)
"""How long it may take to respond, and to be connected to."""
FAILING_AFTER = timedelta(seconds=3)
"""A server to which connections have failed for so long, without one response, is probed as well."""
LOOK_EVERY = timedelta(seconds=1)
PROBE_EVERY = timedelta(seconds=1)
"""How often a server that is away is probed by each process, on average; probes without a response may overlap."""


class SilenceDetector:
    """Watches one side's client; what is slow is waited for, what is gone is not.

    Otherwise a batch would stay claimed, with its server gone, for as long as a large copy may take.
    """

    def __init__(self, client: ObjectClient, on_return: Callable[[], None] = lambda: None) -> None:
        """`client` is the one to cut off; `on_return` is called on the event loop once the server is back."""
        self._client = client
        self._on_return = on_return
        self._responded_at = 0.0
        self.is_away = False
        """Whether the server was found to be away, and has not responded since. Any thread may read it."""

    async def watch(self) -> None:
        """Probe the server whenever it seems to be away, and cut the client off until it responds; until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            if self.is_silent() or self.is_failing():
                try:
                    await self._wait_for_response()
                except Exception:  # noqa: BLE001 - the next probe may succeed
                    _log.exception("the probe of a server failed")

    def is_silent(self) -> bool:
        """Return whether requests wait, and the server has responded to nothing for SILENT_AFTER."""
        since = self._client.waiting_since
        if since is None:
            return False
        silent_since = max(since, self._client.last_response or 0.0, self._responded_at)
        return time.monotonic() - silent_since > SILENT_AFTER.total_seconds()

    def is_failing(self) -> bool:
        """Return whether connections have failed for FAILING_AFTER, without a response, and still do."""
        since, last = self._client.failing_since, self._client.failed_at
        if since is None or last is None or last < self._responded_at:
            return False
        return time.monotonic() - max(since, self._responded_at) > FAILING_AFTER.total_seconds()

    async def _wait_for_response(self) -> None:
        """Return when the server has responded; until then everything that is sent to it fails at once."""
        fault = await self._probe()
        self._responded_at = time.monotonic()
        if fault is None:
            return
        _log.warning("server unavailable, waiting for it", extra={"error": str(fault)})
        try:
            self.is_away = True
            self._client.cut_off(CutOff("Silent", f"the server answers nothing ({fault})"))
            await self._probe_until_response()
        finally:
            self.is_away = False
            self._client.cut_off(None)
            self._responded_at = time.monotonic()
        _log.info("server available again")
        self._on_return()

    async def _probe_until_response(self) -> None:
        """Begin a probe about every second, until one of them has a response."""
        probes: set[asyncio.Task[ObjectError | None]] = set()
        try:
            while not any(probe.result() is None for probe in probes if probe.done()):
                probes = {probe for probe in probes if not probe.done()}
                probes.add(asyncio.create_task(self._probe()))
                await asyncio.sleep(jittered(PROBE_EVERY).total_seconds())
        finally:
            for probe in probes:
                probe.cancel()

    async def _probe(self) -> ObjectError | None:
        """Return why there was no response, or None: any will do, a refusal as well."""
        probed_at = time.monotonic()
        try:
            await self._client.probe(ANSWER_WITHIN)
        except (Unreachable, TimedOut) as error:
            return error if (self._client.last_response or 0.0) < probed_at else None
        return None
