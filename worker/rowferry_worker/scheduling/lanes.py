"""The usual case: a connection takes key after key, without a task, as long as each response is the usual success.

1. A request is written from a template (`PlainCopies.write`): only its keys, its second and its signature are its own.
2. The response is recognised by a strict form (rowferry/s3/usual_responses.py): a whole 200 and nothing else, in one
   piece. It is counted, and the connection goes on with the next key, of the same batch or of the next one.
3. Whatever else comes is read as any response is. A success goes on as above; of a refusal, of a deadline that has
   passed and of a connection that broke a task makes what has to be made of it, with retries and looks. It sends its
   request once more: nothing but a write under a condition, which the server is known to heed, goes through a lane.

Lanes are closed while a server refuses more requests than it is sent, to all kinds of copies but plain ones
(CopyOptions.plain_copy), and to who has to log each object: these take a task each.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, CutOff, ObjectError, ObjectNotFound, TimedOut, Unreachable
from rowferry.http.connection import Connection
from rowferry.http.parser import ResponseParser
from rowferry.plan import SideName
from rowferry.s3.access.template import KEY, SOURCE
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request, copy_object, encode_key, need_no_encoding
from rowferry.s3.responses import Response, name_request
from rowferry.s3.results import read_copied_etag
from rowferry.s3.usual_responses import recognise_copy
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.copying.transfer import PlainCopy
from rowferry_worker.monitoring import metrics

if TYPE_CHECKING:
    from rowferry_worker.scheduling.copy_run import Copy, CopyRun
    from rowferry_worker.scheduling.scheduler import CopyScheduler


class PlainCopies:
    """What lanes do for one batch: copies within one server, under a condition that it is known to heed."""

    side: SideName = "production"

    def __init__(
        self,
        client: ObjectClient,
        rate_key: str,
        plain: PlainCopy,
        targets: Mapping[str, str],
        when_there: "Copy | None" = None,
        *,
        are_plain: bool | None = None,
    ) -> None:
        """`rate_key`: what a learned rate of these requests is known by; `plain`: what all of them have.

        `targets`: the production key of each legacy key. `when_there` copies the object of a key where one was seen at
        its production key. `are_plain`: whether no key needs to be encoded; None: to be found out, in milliseconds
        where there are many.
        """
        self.client, self.rate_key, self.when_there = client, rate_key, when_there
        self._plain, self._targets = plain, targets
        if are_plain is None:
            are_plain = need_no_encoding([*targets, *targets.values()])
        self._are_plain = are_plain
        sample = self._make_copy(SOURCE, KEY)
        self.operation, self.method = sample.operation, sample.method
        self._template = client.lay_out(sample)
        self.final: tuple[type[ObjectError], ...] = (TimedOut, ObjectNotFound)
        """The errors of a request that are the object's result: no second request would tell more."""
        self.size_bytes = 0
        """That of the body of the last response."""

    def _make_copy(self, key: str, target: str) -> Request:
        bucket, headers = self._plain
        return copy_object(target, source_bucket=bucket, source_key=key, if_none_match=True, headers=headers)

    def write(self, key: str) -> bytes:
        """Return the head of a CopyObject, signed now. Raises ObjectRejected for a key that cannot be."""
        target = self._targets[key]
        if not self._are_plain:
            key, target = encode_key(key), encode_key(target)
        return self._template.write(target, key)

    def recognise(self, data: bytes, began: float, now: float) -> CopyResult | None:
        """Return the result where `data` is the usual success and no byte more, else None."""
        found = recognise_copy(data)
        if found is None:
            return None
        etag, self.size_bytes = found
        return CopyResult(Outcome.MIGRATED, 0, etag, "", now - began, began=began)

    def make_request(self, key: str) -> Request:
        """Return a CopyObject."""
        return self._make_copy(key, self._targets[key])

    def read(self, response: Response, began: float, now: float) -> CopyResult:
        """Return the result that another success stands for. Raises ServerFault where it does not confirm the copy."""
        return CopyResult(Outcome.MIGRATED, 0, read_copied_etag(response), "", now - began, began=began)


class Lane:
    """A connection of one client that takes key after key; each has a place in flight. Event-loop thread only."""

    allowance = 0.0

    def __init__(self, scheduler: "CopyScheduler", client: ObjectClient, connection: Connection) -> None:
        """Take an idle connection; `start` is to follow."""
        self._scheduler, self._client, self._connection = scheduler, client, connection
        self._parser: ResponseParser | None = None
        """Reads a response that is not usual."""
        self.started = self.heard_at = 0.0
        self._deadlines = client.deadlines
        connection.lend(self)
        self._deadlines.add(self)

    def start(self, run: "CopyRun", usual: PlainCopies, key: str) -> None:
        """Send the request for a key; a task says why there can be none."""
        self._run, self._usual, self._key = run, usual, key
        run.in_hand[key] = self
        self.started = self.heard_at = time.monotonic()
        try:
            self._connection.write(usual.write(key))
        except ObjectError:
            self._leave_to_task(None, is_clean=True)

    def receive(self, data: bytes) -> None:
        """Take a response, or a part of one."""
        now = self._deadlines.last_response = time.monotonic()
        try:
            result = None if self._parser else self._usual.recognise(data, self.started, now)
            if result is None:
                self._parse(data, now)
                return
        except ObjectError as error:
            self.fail(error)
            return
        except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event loop
            self._run.note_fault(self._key, fault)
            self.cancel()
            return
        self._run.end_usual(self._key, result, now - self.started, now)
        self._go_on(is_clean=True)

    def _parse(self, data: bytes, now: float) -> None:
        if self._parser is None:
            self._parser = self._client.new_parser(self._usual.method)
        self._parser.feed(data)
        self.heard_at = now
        if self._parser.is_complete:
            self._end(self._parser)

    def _end(self, parser: ResponseParser) -> None:
        """Judge a response that has come as a whole, and was not recognised."""
        usual, key, began, now = self._usual, self._key, self.started, time.monotonic()
        request, is_clean = usual.make_request(key), parser.leaves_connection_usable
        response, error = self._client.judge(request, parser)
        if error is not None:
            self._refuse(error, is_clean=is_clean)
            return
        try:
            result = usual.read(response, began, now)
        except ObjectError as unsound:
            result = name_request(unsound, request)
        self._scheduler.record(usual.rate_key, request, response, now - began)
        self._run.end(key, result, now - began)
        self._go_on(is_clean=is_clean)

    def lose(self, exc: Exception | None) -> None:
        """Take in that the connection has ended, as Connection.connection_lost does."""
        parser = self._parser
        if parser is None:
            self._leave_to_task(None, is_clean=False)
        elif exc is None and parser.ends_with_connection:
            self._end(parser)
        else:
            where = "in the middle of its response" if parser.has_headers else "without a response"
            self.fail(Unreachable("ConnectionLost", str(exc or f"the server closed the connection {where}")))

    def expire(self) -> None:
        """End the request: it is overdue."""
        words = f"{self._usual.operation} had no response within {self._deadlines.seconds:g} s"
        self.fail(TimedOut("DeadlinePassed", words))

    def fail(self, error: ObjectError) -> None:
        """End the request with an error, and close the connection."""
        if isinstance(error, Unreachable) and not isinstance(error, CutOff):
            self._client.note_failure()
        self._refuse(error, is_clean=False)

    def cancel(self) -> None:
        """Close the connection; nothing is made of what is in flight. The place is given back."""
        self._close(is_clean=False)
        self._run.leave(self._key)

    def _refuse(self, error: ObjectError, *, is_clean: bool) -> None:
        """Record an error, and leave it to a task, unless it is the object's result."""
        usual, key, run, seconds = self._usual, self._key, self._run, time.monotonic() - self.started
        request, is_final = usual.make_request(key), isinstance(error, usual.final)
        name_request(error, request)
        if not isinstance(error, (CutOff, Cancelled)):  # a task meets these at once, and records them
            self._scheduler.record(usual.rate_key, request, error, seconds)
        if is_final:
            run.end(key, error, seconds)
            self._go_on(is_clean=is_clean)
        else:
            self._leave_to_task(error, is_clean=is_clean)

    def _leave_to_task(self, error: ObjectError | None, *, is_clean: bool) -> None:
        """Have a task go on with the object, in the place of this lane; `error`: how its request has ended."""
        metrics.request_retries.labels(self._usual.side).inc()
        self._close(is_clean=is_clean)
        self._run.start_task(self._key, error)

    def _go_on(self, *, is_clean: bool) -> None:
        """Take the next key; where there is none, give the connection and the place back."""
        if self._parser is not None:
            self._parser.close()
            self._parser = None
        found = self._scheduler.take_next(self._client) if is_clean else None
        if found is None:
            self._close(is_clean=is_clean)
            self._scheduler.note_end()
        else:
            self.start(*found)

    def _close(self, *, is_clean: bool) -> None:
        if self._parser is not None:
            self._parser.close()
        self._deadlines.remove(self)
        self._connection.take_back(is_clean=is_clean)
        self._client.give_back(self._connection)


def begin_lane(scheduler: "CopyScheduler", run: "CopyRun", key: str) -> bool:
    """Copy the object of a key in a lane, in the place that it has in flight; return whether one is to be had."""
    usual = run.find_usual()
    if usual is None or not scheduler.is_open(usual):
        return False
    connection = usual.client.take_idle()
    if connection is None:
        return False
    Lane(scheduler, usual.client, connection).start(run, usual, key)
    return True
