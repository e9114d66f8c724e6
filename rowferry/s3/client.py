"""The hot path to one side's bucket: many requests in flight, each with a deadline and exactly one answer."""

import time
from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from queue import SimpleQueue

from rowferry.db.watchdog import DeadlineWatch
from rowferry.errors import Cancelled, CredentialsUnavailable, ObjectError, ObjectRejected, TimedOut
from rowferry.per_process import once_a_process
from rowferry.plan import Side
from rowferry.s3.credentials import Credentials, FreshCredentials, expires, freeze_credentials
from rowferry.s3.endpoint import Endpoint
from rowferry.s3.exchange import Exchange, Traffic
from rowferry.s3.operations import Request
from rowferry.s3.refusals import Refusals
from rowferry.s3.responses import Answer
from rowferry.s3.wire import S3Wire, explain_failure

MAX_BODY_BYTES = 64 * 1024 * 1024
"""The largest answer taken unless told otherwise: larger objects are read in ranges."""

GRACE = timedelta(seconds=1)
"""How long a cancelled request may take to end, should the event loop be held up or a retry be waiting."""

_share_watch = once_a_process(DeadlineWatch)
"""Returns this process's watch over the deadlines of requests."""


class ObjectClient:
    """Sends requests to one side's bucket, many at once, and calls back with each answer.

    Build it after a fork, never before.
    """

    def __init__(
        self,
        side: Side,
        credentials: Credentials,
        *,
        endpoint: Endpoint,
        max_in_flight: int,
        deadline: timedelta,
        max_body_bytes: int = MAX_BODY_BYTES,
        backoff: timedelta | None = timedelta(milliseconds=500),
        reload: Callable[[], Credentials] | None = None,
    ) -> None:
        """Make a client with up to `max_in_flight` connections; it connects at the first request.

        `deadline` bounds the time of each request without a byte of an answer; where bytes keep coming, it may take
        ten times as long, retries included. What is sent beyond
        `max_in_flight` waits for a connection with its clock running: the caller keeps the limit. `backoff` is the most
        that the first of five retries waits; each later one waits up to twice as long as the one before; None leaves
        retries, and so the sight of what fails, to the caller.
        `reload` reads credentials again that the server has refused, where they may have been changed meanwhile.
        Raises CredentialsUnavailable when expiring credentials cannot be had.
        """
        self._traffic = Traffic(max_body_bytes, self._launch, backoff)
        self._side = side
        self._deadline = deadline
        self._watch = _share_watch()
        self._fresh = FreshCredentials(credentials) if expires(credentials) else None
        keys = self._fresh or freeze_credentials(credentials)
        wire = S3Wire(side, keys, endpoint=endpoint, max_in_flight=max_in_flight)
        self._wire: S3Wire | None = wire
        self._traffic.review = Refusals(side, wire, self._ask_finally, None if self._fresh else reload).review
        self._cut_off: ObjectError | None = None
        self._watch.add(self)

    @property
    def waiting_since(self) -> float | None:
        """Return when (`time.monotonic()`) the oldest request that is still under way was sent; None: none is."""
        return min((exchange.started for exchange in list(self._traffic.in_flight.values())), default=None)

    @property
    def last_answer(self) -> float | None:
        """Return when (`time.monotonic()`) the server last answered anything, errors included; None: never yet.

        It tells a server out of reach from a request that kills its connection.
        """
        return self._traffic.last_answer

    def send(self, request: Request, on_answer: Callable[[Answer], None]) -> None:
        """Send `request` and return at once; `on_answer` is called exactly once, never from inside this call.

        It runs on the event-loop thread (or the watch's, for a request that never started): it must not block.
        Failures of every kind are its Answer's `error`; this method raises nothing.
        """
        self._launch(Exchange(self._traffic, request, on_answer))

    def ask(self, request: Request) -> Answer:
        """Send `request` and return its answer; it waits no longer than the request's deadline allows.

        Failures of every kind are the Answer's `error`. Must not be called on the event-loop thread.
        """
        return self._wait_for_answer(request, is_final=False)

    def _ask_finally(self, request: Request) -> Answer:
        """Return the answer to a request whose refusal is not looked into."""
        return self._wait_for_answer(request, is_final=True)

    def _wait_for_answer(self, request: Request, *, is_final: bool) -> Answer:
        answers: SimpleQueue[Answer] = SimpleQueue()
        exchange = Exchange(self._traffic, request, answers.put)
        exchange.is_final = is_final
        self._launch(exchange)
        return answers.get()

    def _launch(self, exchange: Exchange) -> None:
        """Send a request on its way; when that fails, its answer comes from the watch's thread."""
        try:
            wire = self._admit(exchange.request)
            departure = wire.prepare(exchange.sent, exchange, max_body_bytes=self._traffic.max_body_bytes)
        except Exception as error:  # noqa: BLE001 - every failure goes to on_answer
            self._watch.run_soon(partial(exchange.finish, Answer(0, error=explain_failure(error))))
            return
        exchange.hold(departure)
        departure.leave()

    def cancel_overdue(self, now: float) -> None:
        """Cancel every request that is past its deadline at `now`, and answer those whose cancelling takes too long.

        The watch calls this several times a second.
        """
        for exchange in list(self._traffic.in_flight.values()):
            if exchange.is_stuck(now, GRACE):
                exchange.finish(Answer(0, error=exchange.doom))
            elif exchange.is_overdue(now, self._deadline):
                words = f"{exchange.request.operation} had no answer within {self._deadline.total_seconds():g} s"
                exchange.cancel(TimedOut("DeadlinePassed", words))

    def cancel_all(self, *, but: str = "", only: Collection[Request] | None = None) -> None:
        """Cancel all requests in flight: each is answered with Cancelled, unless its answer comes first.

        Those of the operation `but` are left to end by themselves, and so are all others where `only` names some.
        """
        wanted = None if only is None else {id(request) for request in only}
        for exchange in list(self._traffic.in_flight.values()):
            if exchange.request.operation == but or (wanted is not None and id(exchange.request) not in wanted):
                continue
            exchange.cancel(Cancelled("Cancelled", "the worker was told to stop"))

    def cut_off(self, reason: ObjectError | None) -> None:
        """Answer what is under way, and all that is sent from now on, with `reason`; None: send again."""
        self._cut_off = reason
        if reason is not None:
            for exchange in list(self._traffic.in_flight.values()):
                exchange.cancel(reason)

    def close(self, timeout: timedelta = timedelta(seconds=5)) -> None:
        """Cancel what is in flight and release the connections, waiting at most `timeout` for each of the two.

        Raises the first exception that an `on_answer` raised, if any did. Must not be called from an `on_answer`.
        """
        wire, self._wire = self._wire, None
        self.cancel_all()
        end = time.monotonic() + timeout.total_seconds()
        while self._traffic.in_flight and time.monotonic() < end:
            time.sleep(0.005)
        self._watch.remove(self)
        for exchange in list(self._traffic.in_flight.values()):  # nobody looks after them from now on
            exchange.finish(Answer(0, error=Cancelled("Cancelled", "the client was closed")))
        if self._fresh is not None:
            self._fresh.stop()
        if wire is not None:
            wire.release().wait(timeout.total_seconds())
        if self._traffic.callback_fault is not None:
            raise self._traffic.callback_fault

    def _admit(self, request: Request) -> S3Wire:
        """Return the wire to send `request` on, or raise why it is not sent: legacy is only ever read."""
        if self._wire is None:
            raise Cancelled("Closed", "the worker was told to stop")
        if self._cut_off is not None:
            raise self._cut_off
        if request.side != self._side.name:
            raise ObjectRejected("WrongSide", f"a {request.side} request was given to the {self._side.name} client")
        if request.side == "legacy" and request.method not in {"GET", "HEAD"}:
            raise ObjectRejected("LegacyIsReadOnly", f"{request.operation} would write to the legacy bucket")
        if self._fresh is not None and self._fresh.failure is not None:
            raise CredentialsUnavailable("CredentialsUnavailable", self._fresh.failure)
        return self._wire
