"""Notices that a server has fallen silent, long before each request to it is past its own deadline."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread

from rowferry.errors import CutOff, ObjectError, RowferryError, TimedOut, Unreachable
from rowferry.s3.client import ObjectClient

SILENT_AFTER = timedelta(seconds=8)
"""Without an answer to anything for so long, a server is asked whether it is there."""
ANSWER_WITHIN = timedelta(seconds=8)
"""How long it may take to say so, and to be connected to."""
ASK_EVERY = timedelta(seconds=1)


class Lookout:
    """Watches over one side's client; what is slow is waited for, what is gone is not.

    A batch must not be held for as long as a large copy may take, only because nobody is there to answer.
    """

    def __init__(self, client: ObjectClient, ask: Callable[[timedelta], object]) -> None:
        """`ask` asks the server anything at all on a connection of its own, within the time that it is given."""
        self._client = client
        self._ask = ask
        self._asking = False
        self._answered_at = 0.0
        self._closed = Event()

    def look(self) -> None:
        """Ask, on a thread of its own, if there is reason to; returns at once. One thread at a time may call this."""
        since = self._client.waiting_since
        if since is None or self._asking or self._closed.is_set():
            return
        silent_since = max(since, self._client.last_response or 0.0, self._answered_at)
        if time.monotonic() - silent_since > SILENT_AFTER.total_seconds():
            self._asking = True
            Thread(target=self._ask_until_answered, name="lookout", daemon=True).start()

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def _ask_until_answered(self) -> None:
        """Cut the client off for as long as nobody answers."""
        try:
            while not self._closed.is_set() and (silence := self._listen()) is not None:
                self._client.cut_off(CutOff("Silent", f"the server answers nobody ({silence})"))
                self._closed.wait(ASK_EVERY.total_seconds())
        finally:
            self._client.cut_off(None)
            self._answered_at = time.monotonic()
            self._asking = False

    def _listen(self) -> ObjectError | None:
        """Return why there was no answer, or None: any answer will do, a refusal as well."""
        asked_at = time.monotonic()
        try:
            self._ask(ANSWER_WITHIN)
        except (Unreachable, TimedOut) as error:
            return error if (self._client.last_response or 0.0) < asked_at else None
        except RowferryError:
            return None
        return None
