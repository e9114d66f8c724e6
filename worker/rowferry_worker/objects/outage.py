"""Notices that a server has fallen silent, long before each request to it is past its own deadline."""

import asyncio
import logging
import time
from datetime import timedelta

from rowferry.errors import CutOff, ObjectError, TimedOut, Unreachable
from rowferry.s3.client import ObjectClient

_log = logging.getLogger(__name__)

SILENT_AFTER = timedelta(seconds=8)
"""Without a response to anything for so long, a server is probed."""
ANSWER_WITHIN = timedelta(seconds=8)
"""How long it may take to respond, and to be connected to."""
LOOK_EVERY = timedelta(seconds=1)
PROBE_EVERY = timedelta(seconds=1)


class OutageDetector:
    """Watches one side's client; what is slow is waited for, what is gone is not.

    Otherwise a batch would stay claimed, with its server gone, for as long as a large copy may take.
    """

    def __init__(self, client: ObjectClient) -> None:
        """`client` is the one to cut off."""
        self._client = client
        self._responded_at = 0.0

    async def watch(self) -> None:
        """Probe the server whenever it is silent, and cut the client off until it responds; until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            if self.is_silent():
                try:
                    await self._wait_for_response()
                except Exception:  # noqa: BLE001 - the next probe may succeed
                    _log.exception("the probe of a silent server failed")

    def is_silent(self) -> bool:
        """Return whether requests wait, and the server has responded to nothing for SILENT_AFTER."""
        since = self._client.waiting_since
        if since is None:
            return False
        silent_since = max(since, self._client.last_response or 0.0, self._responded_at)
        return time.monotonic() - silent_since > SILENT_AFTER.total_seconds()

    async def _wait_for_response(self) -> None:
        """Return when the server has responded; until then everything that is sent to it fails at once."""
        try:
            while (silence := await self._probe()) is not None:
                self._client.cut_off(CutOff("Silent", f"the server answers nothing ({silence})"))
                await asyncio.sleep(PROBE_EVERY.total_seconds())
        finally:
            self._client.cut_off(None)
            self._responded_at = time.monotonic()

    async def _probe(self) -> ObjectError | None:
        """Return why there was no response, or None: any will do, a refusal as well."""
        probed_at = time.monotonic()
        try:
            await self._client.probe(ANSWER_WITHIN)
        except (Unreachable, TimedOut) as error:
            return error if (self._client.last_response or 0.0) < probed_at else None
        return None
