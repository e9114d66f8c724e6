"""What a refusal is about: a side, or the object alone. Takes new credentials where the old ones are refused."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from rowferry.errors import ObjectError, ObjectRejected, RowferryError, SideFault
from rowferry.http.event_loop import run_in_thread
from rowferry.plan import Side
from rowferry.s3.access.credentials import Credentials, KeyRing, take_snapshot
from rowferry.s3.operations import Request, get_object, list_first_object
from rowferry.s3.providers import find_region
from rowferry.s3.responses import Response

FAULT_LIFETIME = timedelta(seconds=2)
"""A fault of the side that was found holds for so long: one inquiry serves all requests in doubt.

That an object alone was refused holds for no other request: the credentials may expire at the next one.
"""

_KEY_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}) | frozenset(
    {"InvalidAccessKeyId", "InvalidToken", "InvalidClientTokenId", "XAdminUserNotFound"}
)
_REGION_STATUSES = frozenset({301, 307, 400})
WRONG_REGION = "WrongRegion"
_SIGNATURE_CODE = "SignatureDoesNotMatch"

_log = logging.getLogger(__name__)

Ask = Callable[[Request], Awaitable[tuple[Response, ObjectError | None]]]
"""Sends a request once and returns the response, and its error if it is a refusal."""


class _Inquiry(NamedTuple):
    """What the last inquiry into one kind of doubt has found."""

    started_at: float
    ended_at: float
    fault: SideFault | None


def find_wrong_region(side: Side, response: Response) -> SideFault | None:
    """Return the error where a refusal names another region than the plan."""
    region = response.headers.get("x-amz-bucket-region", "")
    if not region or region == find_region(side) or response.status not in _REGION_STATUSES:
        return None
    error = SideFault(WRONG_REGION, f"{side.bucket} is in {region}: set {side.name}.region to it in the plan")
    error.status, error.headers = response.status, response.headers
    return error


class Refusals:
    """Looks into what the server of one client refuses. Event-loop thread only."""

    def __init__(self, side: Side, keys: KeyRing, ask: Ask, reload: Callable[[], Credentials] | None) -> None:
        """`reload` reads credentials that do not refresh themselves once more: they may have been changed."""
        self._side = side
        self._keys = keys
        self._ask = ask
        self._reload = reload
        self._last: dict[str, _Inquiry] = {}
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One request asks for all of its kind of doubt."""

    async def correct(self, request: Request, response: Response, error: ObjectError, *, is_corrected: bool) -> None:
        """Return where new credentials were found after a refusal, so that the request may be sent again.

        `is_corrected`: they were found for this request before. Raises the error that the refusal stands for where
        nothing could be corrected.
        """
        kind = _name_doubt(response, error)
        if kind is None or (kind == "keys" and (self._reload is None or is_corrected)):
            raise error
        found = await self._inquire_once(kind, request, error)
        if found is not None:
            raise found
        if kind != "keys":
            raise _blame_object(error) if kind == "signature" else error

    async def _inquire_once(self, kind: str, request: Request, error: ObjectError) -> ObjectError | None:
        """Return the error that a refusal stands for; None where the object alone is refused, or the keys are new.

        1. A fault of the side, or new keys, were found a moment ago: they hold for this request as well.
        2. An inquiry has started after this refusal came: it holds as well.
        3. Otherwise this request makes the inquiry.
        """
        refused_at = time.monotonic()
        async with self._turns[kind]:
            last = self._last.get(kind)
            if last is not None:
                is_recent = time.monotonic() - last.ended_at < FAULT_LIFETIME.total_seconds()
                if last.started_at >= refused_at or (is_recent and (last.fault is not None or kind == "keys")):
                    return None if last.fault is None else last.fault.copy()
            started_at = time.monotonic()
            try:
                found = await (self._find_new_keys(error) if kind == "keys" else self._find_reason(request, error))
            except Exception:  # noqa: BLE001 - the refusal itself is the error then
                _log.exception("a refusal could not be looked into")
                found = error
            fault = found if isinstance(found, SideFault) else None
            self._last[kind] = _Inquiry(started_at, time.monotonic(), fault)
            return found

    async def _find_new_keys(self, error: ObjectError) -> ObjectError | None:
        """Read the credentials again; return None where they are others now, else why they are refused."""
        old, reload = self._keys.current, self._reload
        if reload is None:
            return error
        try:
            new = await run_in_thread(lambda: take_snapshot(reload()))
        except RowferryError:
            return error
        if (new.access_key, new.secret_key, new.token) == (old.access_key, old.secret_key, old.token):
            return error
        self._keys.current = new
        _log.info("credentials changed: requests are signed with the new ones", extra={"side": self._side.name})
        return None

    async def _find_reason(self, request: Request, error: ObjectError) -> ObjectError:
        """Return why a request was refused, where another request of the same side tells."""
        if request.method == "HEAD":
            told = await self._ask_again(_as_get(request))
            error = told if told is not None and told.status in {400, 401, 403} else error
        if error.code == _SIGNATURE_CODE:
            # Some servers compute another path for strange keys; a plain request tells whether the secret is right.
            told = await self._ask_again(list_first_object(request.side))
            return told if isinstance(told, SideFault) else _blame_object(error)
        return error

    async def _ask_again(self, request: Request) -> ObjectError | None:
        try:
            _, error = await self._ask(request)
        except ObjectError as failed:
            return failed
        return error


def _name_doubt(response: Response, error: ObjectError) -> str | None:
    """Return what kind of doubt a refusal leaves; None for none: most of them say what they are about."""
    if error.code == WRONG_REGION:
        return None
    if error.code in _KEY_CODES:
        return "keys"
    if error.code == _SIGNATURE_CODE:
        return "signature"
    return f"head {response.status}" if response.status in {400, 403} and not response.body else None


def _as_get(request: Request) -> Request:
    """Return the GET whose body tells what a HEAD of the same thing does not."""
    if not request.key:
        return list_first_object(request.side)
    return get_object(request.side, request.key, first_byte=0, last_byte=0)


def _blame_object(error: ObjectError) -> ObjectError:
    words = (
        "the server accepts these credentials, but not for this object: a proxy before it may drop a header or change "
        "the key"
    )
    return ObjectRejected(_SIGNATURE_CODE, words) if error.code == _SIGNATURE_CODE else error
