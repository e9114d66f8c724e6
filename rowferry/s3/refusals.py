"""What a refusal is about: this host's clock, the credentials, or the object after all. Corrects what can be."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime
from threading import Lock, Thread
from typing import Protocol

from rowferry.errors import ObjectError, ObjectRejected, RowferryError, SideFault
from rowferry.http.event_loop import share_loop
from rowferry.plan import Side
from rowferry.s3.credentials import Credentials, freeze_credentials
from rowferry.s3.exchange import Exchange
from rowferry.s3.operations import Request, get_object, list_first_object
from rowferry.s3.responses import Answer
from rowferry.s3.wire import S3Wire

ALLOWED_SKEW = timedelta(minutes=5)
"""A clock that differs by more is corrected; S3 servers refuse what was signed 15 minutes off."""
CLOSE = timedelta(seconds=5)
"""Where the server says itself that the clock is wrong, less is too much already."""
ASK_EVERY = timedelta(seconds=2)
"""A fault of the side that was found out holds for so long: one request in doubt asks for all of its kind.

That an object alone was refused holds for no other request: the credentials may expire at the next one.
"""

_CLOCK_CODES = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_KEY_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}) | frozenset(
    {"InvalidAccessKeyId", "InvalidToken", "InvalidClientTokenId", "XAdminUserNotFound"}
)
_REGION_STATUSES = frozenset({301, 307, 400})
_SIGNATURE_CODE = "SignatureDoesNotMatch"

_log = logging.getLogger(__name__)


class Asks(Protocol):
    """Sends a request and returns its answer, whose refusal is not looked into in turn."""

    def __call__(self, request: Request) -> Answer:
        """Wait for the answer."""
        ...


class Refusals:
    """Looks into what the server of one client refuses, before the answer is given."""

    def __init__(self, side: Side, wire: S3Wire, ask: Asks, reload: Callable[[], Credentials] | None) -> None:
        """`reload` reads credentials that do not expire by themselves once more, where they may have been changed."""
        self._side = side
        self._wire = wire
        self._ask = ask
        self._reload = reload
        self._doubts: dict[str, list[tuple[Exchange, Answer]]] = defaultdict(list)
        self._found: dict[str, tuple[float, ObjectError | None]] = {}
        """By kind of doubt: when it was last settled, and the fault of the side that was found, if any."""
        self._is_asking = False
        self._turn = Lock()

    def review(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the exchange is taken over: to be sent again, or answered once more is known.

        Called on the event-loop thread.
        """
        region = answer.headers.get("x-amz-bucket-region", "")
        if region and region != self._side.region and answer.status in _REGION_STATUSES:
            words = f"{self._side.bucket} is in {region}: set {self._side.name}.region to it in the plan"
            exchange.end(Answer(answer.status, answer.headers, answer.body, SideFault("WrongRegion", words)))
            return True
        kind = _name_doubt(answer)
        if kind is None or exchange.is_final:
            return False
        if not exchange.has_new_clock and self._correct_clock(answer):
            exchange.has_new_clock = True
            exchange.relaunch()
            return True
        if kind == "clock" or (kind == "keys" and (self._reload is None or exchange.has_new_keys)):
            return False
        self._doubt(kind, exchange, answer)
        return True

    def _correct_clock(self, answer: Answer) -> bool:
        """Set the signatures' clock by the server's where it differs by much; return whether a new try may help."""
        server = _read_date(answer.headers.get("date", ""))
        if server is None:
            return False
        is_told = answer.error is not None and answer.error.code in _CLOCK_CODES
        before, offset = self._wire.clock_offset, server - time.time()
        if abs(offset - before) > (CLOSE if is_told else ALLOWED_SKEW).total_seconds():
            self._wire.clock_offset = offset
            words = "this host's clock differs from the server's, so requests are signed with the server's time"
            _log.warning(words, extra={"side": self._side.name, "seconds": round(offset)})
            return True
        return is_told and before != 0  # corrected by another request while this one was on its way

    def _doubt(self, kind: str, exchange: Exchange, answer: Answer) -> None:
        """Settle the doubt by what is known, or have it looked into on a thread of its own."""
        with self._turn:
            is_known, fault = self._recall(kind)
            if not is_known:
                self._doubts[kind].append((exchange, answer))
                if not self._is_asking:
                    self._is_asking = True
                    Thread(target=self._settle_all, name="rowferry-refusals", daemon=True).start()
        if is_known:
            self._end(kind, exchange, answer, fault)

    def _recall(self, kind: str) -> tuple[bool, ObjectError | None]:
        """Return whether it is known why this kind is refused, and the fault; the caller holds the turn."""
        found_at, fault = self._found.get(kind, (float("-inf"), None))
        is_fresh = time.monotonic() - found_at < ASK_EVERY.total_seconds()
        return is_fresh and (fault is not None or kind == "keys"), fault

    def _settle_all(self) -> None:
        """Look into what is in doubt until nothing is; what was refused meanwhile is looked into by itself."""
        while True:
            with self._turn:
                kind = next(iter(self._doubts), None)
                if kind is None:
                    self._is_asking = False
                    return
                doubts = self._doubts.pop(kind)
                is_known, fault = self._recall(kind)
            exchange, answer = doubts[0]
            if is_known:
                self._end_all(kind, doubts, fault)
                continue
            try:
                reason = self._find_new_keys(answer) if kind == "keys" else self._find_reason(exchange.request, answer)
            except Exception:  # noqa: BLE001 - who waits is answered all the same
                _log.exception("a refusal could not be looked into")
                reason = answer.error
            fault = reason if isinstance(reason, SideFault) else None
            with self._turn:
                self._found[kind] = (time.monotonic(), fault)
            self._end(kind, exchange, answer, reason)
            self._end_all(kind, doubts[1:], fault)

    def _end_all(self, kind: str, doubts: Sequence[tuple[Exchange, Answer]], fault: ObjectError | None) -> None:
        """End what was refused by the time that the fault of the side, None for none, was asked for."""
        for exchange, answer in doubts:
            self._end(kind, exchange, answer, fault)

    def _end(self, kind: str, exchange: Exchange, answer: Answer, reason: ObjectError | None) -> None:
        """End an exchange, for which `reason` is known; with new keys it is sent again."""
        if kind == "keys" and reason is None:
            exchange.has_new_keys = True
            share_loop().run(exchange.relaunch)
            return
        if reason is None and kind == "signature" and answer.error is not None:
            reason = _blame_object(answer.error)
        if reason is not None:
            answer = Answer(answer.status, answer.headers, answer.body, reason)
        share_loop().run(lambda: exchange.end(answer))

    def _find_new_keys(self, answer: Answer) -> ObjectError | None:
        """Read the credentials again; return None where they are others now, else why they are refused."""
        old = self._wire.frozen_credentials
        try:
            new = freeze_credentials(self._reload()) if self._reload is not None else old
        except RowferryError:
            return answer.error
        if (new.access_key, new.secret_key, new.token) == (old.access_key, old.secret_key, old.token):
            return answer.error
        self._wire.use_credentials(new)
        _log.info(
            "the credentials have changed: requests are signed with the new ones", extra={"side": self._side.name}
        )
        return None

    def _find_reason(self, request: Request, answer: Answer) -> ObjectError | None:
        """Return why a request was refused, where a request of the same side tells."""
        error = answer.error
        if request.method == "HEAD":
            told = self._ask(_as_get(request))
            error = told.error if told.status in {400, 401, 403} else error
        if error is not None and error.code == _SIGNATURE_CODE:
            # Some servers reckon with another path for strange keys; a plain one tells whether the secret is right.
            told = self._ask(list_first_object(request.side))
            return told.error if isinstance(told.error, SideFault) else _blame_object(error)
        return error


def _name_doubt(answer: Answer) -> str | None:
    """Return what kind of doubt a refusal leaves; None for none: most of them say what they are about."""
    error = answer.error
    if error is None:
        return None
    if error.code in _CLOCK_CODES:
        return "clock"
    if error.code in _KEY_CODES:
        return "keys"
    if error.code == _SIGNATURE_CODE:
        return "signature"
    return f"head {answer.status}" if answer.status in {400, 403} and not answer.body else None


def _as_get(request: Request) -> Request:
    """Return the GET that tells, in a body, what a HEAD of the same thing does not."""
    if not request.key:
        return list_first_object(request.side)
    return get_object(request.side, request.key, first_byte=0, last_byte=0)


def _blame_object(error: ObjectError) -> ObjectError:
    words = "the server accepts these credentials, but not with this key"
    return ObjectRejected(_SIGNATURE_CODE, words) if error.code == _SIGNATURE_CODE else error


def _read_date(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
