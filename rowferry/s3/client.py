"""The S3 client of one side's bucket: a request is signed, sent on a kept connection, and its response judged."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from rowferry.errors import (
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    CutOff,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    ServerFault,
    TimedOut,
    Unreachable,
)
from rowferry.http import event_loop
from rowferry.http.connect import Connector, explain_failure
from rowferry.http.connection import Connection, StaleConnection
from rowferry.http.deadlines import Deadlines, InFlight
from rowferry.http.outbox import Outbox
from rowferry.http.parser import ResponseParser
from rowferry.http.pipe import SourceFailed
from rowferry.http.pool import Pool
from rowferry.http.stream import BodyStream
from rowferry.http.trust import trust
from rowferry.plan import Side
from rowferry.s3.access.credentials import Credentials, KeyRing, load_credentials
from rowferry.s3.access.endpoint import Endpoint, refuse_token_in_clear, resolve_endpoint
from rowferry.s3.access.signing import HeadWriter
from rowferry.s3.access.template import Template
from rowferry.s3.encodings import OBJECTS, OTHER, Accepts, describe_recoding, is_same_object, judge_encoding
from rowferry.s3.operations import Request, head_bucket, head_object, may_be_resent
from rowferry.s3.refusals import Refusals, find_wrong_region
from rowferry.s3.responses import Response, find_error, name_request
from rowferry.s3.results import refuse_unsound
from rowferry.s3.retry import send_with_retries

MAX_BODY_BYTES = 64 * 1024 * 1024
"""The longest response body that is taken unless told otherwise: larger objects are read in ranges."""

REQUEST_DEADLINE = timedelta(seconds=60)
"""The deadline of a request unless told otherwise; a copy of 5 GiB takes a server some ten seconds."""

CLOSE_WITHIN = timedelta(seconds=5)

_log = logging.getLogger(__name__)


class ObjectClient:
    """Sends requests to one side's bucket. Its coroutines run on the process's event loop."""

    def __init__(
        self,
        side: Side,
        credentials: Credentials,
        *,
        endpoint: Endpoint,
        max_in_flight: int,
        deadline: timedelta,
        max_body_bytes: int = MAX_BODY_BYTES,
        reload: Callable[[], Credentials] | None = None,
    ) -> None:
        """Make a client with up to `max_in_flight` connections; the first request opens the first one.

        `deadline` bounds how long a request goes without a byte of its response, waiting for a connection included;
        while bytes keep coming, it may take LONGEST deadlines. `reload` reads credentials again that the server has
        refused. Raises CredentialsUnavailable when expiring credentials cannot be had.
        """
        self._side = side
        self._max_body_bytes = max_body_bytes
        self._keys = KeyRing(credentials)
        self._writer = HeadWriter(side, endpoint)
        host = f"{side.bucket}.{endpoint.host}" if endpoint.virtual_host else endpoint.host
        tls = trust(endpoint.ca_bundle) if endpoint.scheme == "https" else None
        self._connector = Connector(
            host, endpoint.port, tls=tls, proxy=endpoint.proxy, may_be_link_local=endpoint.is_named
        )
        self._pool = Pool(self._connector, max_in_flight)
        reload = None if self._keys.refreshes else reload
        self._refusals = Refusals(side, self._keys, self._exchange, reload)
        self._deadlines = Deadlines(deadline.total_seconds())
        self._accepts: Accepts = "gzip"
        """How objects came as they are stored, the last time."""
        self._failing_since: float | None = None
        self.failed_at: float | None = None
        """When (`time.monotonic()`) a connection last could not be made or kept; None: never yet."""
        self._refusal: ObjectError | None = None
        """Why nothing is sent now: the client is cut off or closed."""

    @property
    def waiting_since(self) -> float | None:
        """Return when (`time.monotonic()`) the oldest request in flight was sent; None where there is none."""
        return self._deadlines.oldest

    @property
    def last_response(self) -> float | None:
        """Return when (`time.monotonic()`) the server last sent a byte of any response; None: never yet."""
        return self._deadlines.last_response

    @property
    def failing_since(self) -> float | None:
        """Return when (`time.monotonic()`) the first connection failed since the last response; None: none has."""
        since = self._failing_since
        return None if since is None or since < (self.last_response or 0.0) else since

    def note_failure(self) -> None:
        """Note that a connection could not be made or kept."""
        self.failed_at = time.monotonic()
        if self.failing_since is None:
            self._failing_since = self.failed_at

    async def send(self, request: Request) -> Response:
        """Send a request once and return the response. Raises an ObjectError for every refusal and failure.

        Where the credentials have changed, the request is sent again.
        """
        try:
            self._refuse_request(request)
            sent_bytes = 0 if request.source is None else request.source.length
            with InFlight(self._deadlines, streamed_bytes=sent_bytes) as in_flight:
                if request.operation in OBJECTS:
                    return await self._send_as_stored(request, in_flight)
                return await self._send_corrected(request, in_flight, "identity")
        except TimeoutError:
            words = f"{request.operation} had no response within {self._deadlines.seconds:g} s"
            raise name_request(TimedOut("DeadlinePassed", words), request) from None
        except SourceFailed as failed:
            raise failed.error from None
        except ObjectError as error:
            if isinstance(error, Unreachable) and not isinstance(error, CutOff):
                self.note_failure()
            raise name_request(error, request) from None

    def lay_out(self, request: Request) -> Template:
        """Return the template of requests like this one, which has the keys of the template in the place of theirs."""
        accepts: Accepts = self._accepts if request.operation in OBJECTS else "identity"
        return Template(self._writer, request, self._keys, accepts)

    def take_idle(self) -> Connection | None:
        """Return an idle connection for requests of a template; None: there is none, or nothing may be sent now."""
        if self._refusal is not None or self._keys.failure is not None:
            return None
        return self._pool.take_idle()

    @property
    def is_wanted(self) -> bool:
        """Return whether requests wait for a connection that another one has."""
        return bool(self._pool.waiting)

    def give_back(self, connection: Connection) -> None:
        """Take back a connection that `take_idle` has returned."""
        self._pool.release(connection)

    @property
    def deadlines(self) -> Deadlines:
        """Return what watches requests in flight: those of a template are to be added."""
        return self._deadlines

    def new_parser(self, method: str) -> ResponseParser:
        """Return the parser of a response that is taken as a whole."""
        return ResponseParser(is_head=method == "HEAD", max_body_bytes=self._max_body_bytes)

    async def _send_as_stored(self, request: Request, in_flight: InFlight) -> Response:
        """Return the response to a request; an object comes as it is stored, or it is asked for in the other way.

        What a proxy on the way does to one object it will do to the next: the way that served is the first then.
        """
        first = self._accepts
        for accepts in (first, OTHER[first]):
            response = await self._send_corrected(request, in_flight, accepts)
            if await self._is_as_stored(request, response, in_flight, accepts):
                if accepts != first:
                    self._accepts = accepts
                return response
        raise describe_recoding(request, response)

    async def _is_as_stored(self, request: Request, response: Response, in_flight: InFlight, accepts: Accepts) -> bool:
        """Return whether a response is an object as it is stored; the body of any other is closed."""
        verdict = judge_encoding(request, response)
        if verdict == "stored":
            return True
        is_stored = False
        try:
            if verdict == "unclear":
                head = await self._send_corrected(head_object(request.side, request.key), in_flight, accepts)
                is_stored = is_same_object(response, head)
        finally:
            if response.stream is not None and not is_stored:
                response.stream.close()
        return is_stored

    async def _send_corrected(self, request: Request, in_flight: InFlight, accepts: Accepts) -> Response:
        """Return the response to a request. Raises the error of a refusal that cannot be corrected."""
        response, error = await self._exchange(request, in_flight, accepts)
        is_corrected = False
        while error is not None:  # that is tried once, or the error is raised
            await self._refusals.correct(request, response, error, is_corrected=is_corrected)
            is_corrected = True
            response, error = await self._exchange(request, in_flight, accepts)
        return response

    async def _exchange(
        self, request: Request, in_flight: InFlight | None = None, accepts: Accepts = "gzip"
    ) -> tuple[Response, ObjectError | None]:
        """Send a request and return the response, and the error that it stands for if it is a refusal.

        A kept connection may have been closed before the request came: then it is sent again on a new one, if that can
        do no harm where the server has carried it out after all.
        """
        head = self._writer.write(request, self._keys.current, accepts)
        is_resent = False
        while True:
            if request.source is not None:
                self._refuse_when_cut_off()
                await request.source.open(in_flight)
            self._refuse_when_cut_off()
            parser = ResponseParser(
                is_head=request.method == "HEAD",
                max_body_bytes=self._max_body_bytes,
                stream_above=request.stream_above,
            )
            connection = await self._pool.acquire(new=is_resent, for_body=request.method != "HEAD")
            stream = None
            if request.source is not None:  # what brings it may need other requests
                self._pool.lend(connection)
            try:
                await connection.exchange(head, request.source or request.body, parser, in_flight)
                if parser.is_streamed and in_flight is not None:
                    stream = self._begin_stream(request, connection, parser.length, in_flight)
            except StaleConnection as error:
                if not may_be_resent(request):
                    raise Unreachable(error.code, error.message) from None
                is_resent = True
                continue
            finally:
                if stream is None:
                    self._pool.take_back(connection)
            self._deadlines.last_response = time.monotonic()
            if in_flight is not None:
                in_flight.heard_at = self._deadlines.last_response
            return self.judge(request, parser, stream)

    def _begin_stream(self, request: Request, connection: Connection, length: int, in_flight: InFlight) -> BodyStream:
        """Return the body of a response; the connection is released when it is closed."""
        self._pool.lend(connection)
        return BodyStream(
            connection,
            length,
            deadlines=self._deadlines,
            started=in_flight.started,
            name=partial(name_request, request=request),
            on_end=partial(self._pool.take_back, connection),
        )

    def judge(
        self, request: Request, parser: ResponseParser, stream: BodyStream | None = None
    ) -> tuple[Response, ObjectError | None]:
        """Return a response, and the error that it stands for; the body of a response that is refused is closed."""
        try:
            response = Response(parser.status, parser.headers, b"" if stream else parser.take_body(), stream)
            error = find_error(response, may_hide_error=request.operation != "GetObject")
            unsound = refuse_unsound(request, response) if error is None else None
        except Exception as fault:  # noqa: BLE001 - fails this request alone
            _log.exception("a response could not be read", extra={"operation": request.operation})
            if stream is not None:
                stream.close()
            words = f"the response could not be read ({type(fault).__name__})"
            raise ServerFault("UnreadableResponse", words) from None
        if stream is not None and (error or unsound):
            stream.close()
        if unsound is not None:
            raise unsound
        return response, error and (find_wrong_region(self._side, response) or error)

    def _refuse_request(self, request: Request) -> None:
        """Raise why a request is not sent: the legacy side is only ever read."""
        self._refuse_when_cut_off()
        if request.side != self._side.name:
            raise ObjectRejected("WrongSide", f"a {request.side} request was given to the {self._side.name} client")
        if request.side == "legacy" and request.method not in {"GET", "HEAD"}:
            raise ObjectRejected("LegacyIsReadOnly", f"{request.operation} would write to the legacy bucket")
        if self._keys.failure is not None:
            raise CredentialsUnavailable("CredentialsUnavailable", self._keys.failure)

    def _refuse_when_cut_off(self) -> None:
        if self._refusal is not None:
            raise self._refusal.copy()

    async def probe(self, within: timedelta) -> None:
        """Ask for the bucket on a new connection, also while cut off; return at any response, a refusal as well.

        Raises Unreachable or TimedOut when none comes in time.
        """
        request = head_bucket(self._side.name)
        connection = Connection(Outbox(), lambda _: None)
        parser = ResponseParser(is_head=True, max_body_bytes=self._max_body_bytes)
        try:
            async with asyncio.timeout(within.total_seconds()):
                try:
                    await self._connector.connect(connection)
                except Exception as error:
                    raise explain_failure(error) from error
                await connection.exchange(self._writer.write(request, self._keys.current), b"", parser)
        except TimeoutError:
            raise TimedOut("DeadlinePassed", f"no response within {within.total_seconds():g} s") from None
        except (Unreachable, TimedOut):
            raise
        except ObjectError:
            return
        finally:
            connection.close()

    def cut_off(self, reason: CutOff | None) -> None:
        """End all requests with `reason` until it is None, those in flight as well. Event-loop thread only."""
        if isinstance(self._refusal, Cancelled):
            return
        self._refusal = reason
        if reason is not None:
            self._pool.fail_all(reason)

    def ask(self, request: Request, *, tries: int = 1) -> Response:
        """Send a request from another thread, at most `tries` times, and wait for its response; otherwise as `send`."""
        return event_loop.run(send_with_retries(self.send, request, tries=tries))

    async def aclose(self) -> None:
        """Close the connections; what is in flight, and all that is sent from now on, ends with Cancelled."""
        self._keys.stop()
        self._refusal = Cancelled("Cancelled", "the client was closed")
        self._pool.close(self._refusal)
        for _ in range(3):  # connections are lost, then requests end
            await asyncio.sleep(0)

    def close(self) -> None:
        """Close the connections, from another thread; wait for that no longer than CLOSE_WITHIN."""
        with suppress(TimeoutError, event_loop.LoopStopped):
            event_loop.run(self.aclose(), CLOSE_WITHIN)


def open_object_client(
    side: Side,
    *,
    max_in_flight: int = 1,
    deadline: timedelta = REQUEST_DEADLINE,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> ObjectClient:
    """Return a client of `side`, with the credentials, the endpoint and the trust that workers have; close it.

    Nothing is sent yet. Raises UsageError for an unusable endpoint, region or bundle of certificates, and where there
    are no credentials; CredentialsUnavailable when expiring ones cannot be had.
    """
    credentials, endpoint = load_credentials(side, os.environ), resolve_endpoint(side)
    refuse_token_in_clear(side, endpoint, credentials)
    return ObjectClient(
        side,
        credentials,
        endpoint=endpoint,
        max_in_flight=max_in_flight,
        deadline=deadline,
        max_body_bytes=max_body_bytes,
        reload=partial(load_credentials, side, os.environ),
    )


def check_bucket(client: ObjectClient, side: Side, *, tries: int = 1) -> None:
    """Return when the bucket is there and may be looked at.

    Raises BucketNotFound, AccessDenied, SideFault (of another region as well), Unreachable and the like.
    """
    try:
        client.ask(head_bucket(side.name), tries=tries)
    except ObjectNotFound as error:
        raise BucketNotFound("NoSuchBucket", f"there is no bucket {side.bucket!r}") from error
