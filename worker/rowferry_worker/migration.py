"""What a worker knows of a migration: its plan, the clients of both sides, and how objects travel between them."""

import os
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from threading import Lock

from rowferry.batch import Batch
from rowferry.db.connection import Connection, fetch_one
from rowferry.db.entries import EntrySql
from rowferry.db.statements import statement
from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    MigrationFault,
    ObjectError,
    RowferryError,
    TimedOut,
    Unreachable,
    UsageError,
)
from rowferry.plan import OnConflict, Plan, Side, SideName
from rowferry.plan_file import parse_plan
from rowferry.s3.client import ObjectClient
from rowferry.s3.endpoint import refuse_foreign_endpoint
from rowferry.s3.operations import (
    Request,
    abort_multipart_upload,
    copy_object,
    create_multipart_upload,
    get_object_tagging,
    head_object,
)
from rowferry.s3.responses import Answer, read_text
from rowferry.s3.side_client import REQUEST_DEADLINE, ask_bucket, check_bucket, open_object_client
from rowferry_worker.monitoring.heartbeat import ClusterState
from rowferry_worker.objects.conditional_writes import Condition
from rowferry_worker.objects.copy import Way
from rowferry_worker.objects.journey import NO_OBJECT
from rowferry_worker.objects.outage import Lookout
from rowferry_worker.objects.rate_limit import Pace
from rowferry_worker.objects.scheduler import TAKES_BACK
from rowferry_worker.objects.tags import Tagging
from rowferry_worker.objects.transfer import STREAM_PART_BYTES, Carrier, ServerCopy, StreamCopy


class Route:
    """One revision of one migration, ready to work with."""

    def __init__(
        self,
        plan: Plan,
        clients: dict[SideName, ObjectClient],
        fleet: ClusterState,
        lookouts: Sequence[Lookout] = (),
    ) -> None:
        """Hold the plan and one client a side; the bounds of the plan are shared with the fleet."""
        self.plan = plan
        self._lookouts = lookouts
        self._looking = Lock()
        self._fleet = fleet
        self._request_paces: dict[SideName, Pace] = {
            side.name: Pace(partial(fleet.share_of, side.max_requests_per_second))
            for side in (plan.legacy, plan.production)
        }
        self._row_pace = Pace(partial(fleet.share_of, plan.database.max_rows_per_second))
        self._clients = clients
        self._carrier = _choose_carrier(plan)
        self._condition = Condition(plan.production.bucket)
        self._tagging = Tagging()
        self._entries: dict[str, EntrySql] = {}
        self._updatable: set[str] = set()

    def entries(self, connection: Connection, label: str) -> EntrySql:
        """Return the SQL face of the entries a batch names.

        Raises MigrationFault when the plan or the table no longer has them.
        """
        if label not in self._entries:
            found = next((entries for entries in self.plan.entries if entries.label == label), None)
            if found is None:
                raise MigrationFault(f"The plan of migration {self.plan.name} has no entries {label}.")
            self._entries[label] = EntrySql.of(connection, found)
        return self._entries[label]

    def check_update(self, connection: Connection, label: str) -> None:
        """Raise MigrationFault, once for each table, when this role may not update the entries that a batch names.

        Better than after their objects were copied.
        """
        if label not in self._updatable:
            self.entries(connection, label).check(connection, update=True)
            self._updatable.add(label)

    def forget_entries(self) -> None:
        """Look tables up again: one of them may have been changed."""
        self._entries.clear()
        self._updatable.clear()

    def way(self, on_conflict: OnConflict) -> Way:
        """Return how the objects of a batch travel."""
        return Way(self._carrier, self._condition, on_conflict, self._tagging)

    def send(self, request: Request, on_answer: Callable[[Answer], None]) -> None:
        """Send a request to the side that it is for."""
        self._clients[request.side].begin(request, on_answer)

    def reserve(self, request: Request) -> timedelta:
        """Take the turn of a request under its side's `max_requests_per_second`; return how long to wait for it."""
        return self._request_paces[request.side].reserve()

    def reserve_rows(self, rows: int) -> timedelta:
        """Take the turn of so many rows under the plan's `max_rows_per_second`; return how long to wait for it."""
        return self._row_pace.reserve(rows)

    def is_held_up(self) -> bool:
        """Return whether the plan's `max_replica_lag` forbids more work for now."""
        return self._fleet.is_behind(self.plan.database.max_replica_lag)

    def is_reachable(self) -> bool:
        """Return whether both servers answer anything at all, now; waits for at most the deadline of a request."""
        answers: SimpleQueue[Answer] = SimpleQueue()
        for side, client in self._clients.items():
            client.begin(head_object(side, NO_OBJECT), answers.put)
        return not any(isinstance(answers.get().error, (Unreachable, TimedOut, Cancelled)) for _ in self._clients)

    def is_refused(self, denied: AccessDenied) -> bool:
        """Return whether an operation that was denied for an object is denied for a key without one as well.

        What is asked for writes no object, whatever the server answers.
        """
        client = self._clients[denied.side or "production"]
        answer = client.ask_answer(_choose_probe(self.plan, denied))
        if upload_id := read_text(answer.body, "UploadId") if answer.error is None else None:
            client.ask_answer(abort_multipart_upload(NO_OBJECT, upload_id=upload_id))
        return isinstance(answer.error, AccessDenied)

    def find_lost_bucket(self) -> BucketNotFound | None:
        """Return the error for the first of the two buckets that is not there; None when both are, or cannot be asked.

        A HEAD does not tell a missing bucket from a missing object.
        """
        for side in (self.plan.legacy, self.plan.production):
            try:
                check_bucket(self._clients[side.name], side)
            except BucketNotFound as lost:
                lost.side = side.name
                return lost
            except (ObjectError, UsageError):
                continue
        return None

    def look_out(self) -> None:
        """Find out whether servers that owe an answer are still there; returns at once."""
        with self._looking:
            for lookout in self._lookouts:
                lookout.look()

    def close(self) -> None:
        """Give up what is in flight and close the connections."""
        for lookout in self._lookouts:
            lookout.close()
        for client in self._clients.values():
            client.cancel_all()
            client.close()

    def cancel(self, only: Collection[Request]) -> None:
        """Give up these requests, as far as they are in flight, but for what takes back an upload."""
        for client in self._clients.values():
            client.cancel_all(but=TAKES_BACK, only=only)


class Routes:
    """The routes of a worker process, opened when a batch first needs them and again when the plan changes."""

    def __init__(
        self, parallel: int, fleet: ClusterState | None = None, request_deadline: timedelta = REQUEST_DEADLINE
    ) -> None:
        """`parallel`: objects in flight, which bounds the connections to each side."""
        self._parallel = parallel
        self._request_deadline = request_deadline
        self._fleet = fleet or ClusterState()
        self._open: dict[tuple[int, int], Route] = {}
        self._turn = Lock()

    def find(self, connection: Connection, batch: Batch) -> Route:
        """Return the route of a batch.

        Raises UsageError when this worker cannot travel it: credentials are missing, or a bucket is not there.
        """
        known = (batch.migration_id, batch.revision)
        with self._turn:
            if known not in self._open:
                row = fetch_one(connection, statement("load_migration"), {"id": batch.migration_id})
                self._open[known] = self._build(parse_plan(row["plan"], f"of migration {row['name']}"))
            return self._open[known]

    def close(self) -> None:
        """Close every route."""
        for route in self._open.values():
            route.close()

    def _build(self, plan: Plan) -> Route:
        max_body_bytes = min(STREAM_PART_BYTES, plan.migration.multipart_threshold_bytes or STREAM_PART_BYTES)
        sides = (plan.legacy, plan.production)
        clients: dict[SideName, ObjectClient] = {}
        try:
            for side in sides:
                clients[side.name] = self._client(side, max_body_bytes)
        except RowferryError:
            for client in clients.values():
                client.close()
            raise
        lookouts = [Lookout(clients[side.name], partial(ask_bucket, side)) for side in sides]
        return Route(plan, clients, self._fleet, lookouts)

    def _client(self, side: Side, max_body_bytes: int) -> ObjectClient:
        refuse_foreign_endpoint(side, os.environ)
        client = open_object_client(
            side,
            max_in_flight=self._parallel,
            deadline=self._request_deadline,
            max_body_bytes=max_body_bytes,
        )
        try:
            _check_bucket(client, side)
        except UsageError:
            client.close()
            raise
        return client


def _choose_probe(plan: Plan, denied: AccessDenied) -> Request:
    """Return a request that needs the same right as the one that was denied, about a key without an object."""
    match denied.operation:
        case "HeadObject" | "GetObject":
            return head_object(denied.side or "legacy", NO_OBJECT)
        case "GetObjectTagging":
            return get_object_tagging(denied.side or "legacy", NO_OBJECT)
        case "CopyObject" | "UploadPartCopy":
            source = plan.legacy.bucket
            return copy_object(NO_OBJECT, source_bucket=source, source_key=NO_OBJECT, if_none_match=True)
        case _:
            return create_multipart_upload(NO_OBJECT)


def _choose_carrier(plan: Plan) -> Carrier:
    """Return how the plan's objects travel; storage classes only where both sides know the same ones."""
    threshold_bytes = plan.migration.multipart_threshold_bytes
    if plan.server_side:
        return ServerCopy(plan.legacy.bucket, threshold_bytes)
    same_provider = plan.legacy.server == plan.production.server
    return StreamCopy(keep_class=same_provider, threshold_bytes=threshold_bytes)


def _check_bucket(client: ObjectClient, side: Side) -> None:
    """Raise UsageError when a bucket is not there or not ours; a server that is away for now is waited for."""
    try:
        check_bucket(client, side)
    except ObjectError as error:
        if isinstance(error, BucketNotFound) or not error.retryable:
            raise UsageError(f"The {side.name} bucket {side.bucket} cannot be used: {error}.") from error
