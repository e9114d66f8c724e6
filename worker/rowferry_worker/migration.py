"""What a worker knows of a migration: its plan, the clients of both sides, and how its objects are copied."""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import cached_property, partial
from threading import Lock

from rowferry.batch import Batch
from rowferry.db.called_functions import list_expressions, refuse_functions
from rowferry.db.connection import Connection, fetch_one
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.errors import (
    BucketNotFound,
    MigrationFault,
    ObjectError,
    PlanError,
    QueueUnusable,
    RowferryError,
    UsageError,
)
from rowferry.http import event_loop
from rowferry.plan import Plan, QueueSettings, SideName
from rowferry.plan_file import parse_plan
from rowferry.queue_spec import QueueSpec
from rowferry.reports.facts import KEPT_OTHERS, READABLE, WRITTEN, Facts
from rowferry.s3.access.endpoint import refuse_foreign_endpoint
from rowferry.s3.client import REQUEST_DEADLINE, ObjectClient, check_bucket, open_object_client
from rowferry.s3.clocks import NO_SKEW
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.copying.copy import CopyOptions
from rowferry_worker.copying.precedence import Clocks
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.machine import choose_bodies_budget
from rowferry_worker.monitoring.heartbeat import ClusterState
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.own_copies import name_bucket
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.pacing.rate_limit import Bound
from rowferry_worker.properties.settle import Properties
from rowferry_worker.properties.tags import Tagging
from rowferry_worker.scheduling.evidence import Evidence
from rowferry_worker.scheduling.scheduler import CopyScheduler, RequestPace
from rowferry_worker.scheduling.silence import SilenceDetector
from rowferry_worker.service import count_processes

BOTH: tuple[SideName, SideName] = ("legacy", "production")
ROWS_AHEAD = timedelta(seconds=10)
"""For how long claimed rows may wait for `max_rows_per_second`: each batch has a transaction open meanwhile."""


class MigrationContext:
    """One revision of one migration, ready to work with."""

    def __init__(
        self,
        plan: Plan,
        cluster: ClusterState,
        bodies: BodyBudget,
        on_return: Callable[[], None],
        facts: Facts,
    ) -> None:
        """Hold the plan, with no side open yet; all workers of the cluster share its bounds.

        `bodies`: what the bodies of all migrations of this process may hold; `on_return` is called on the event loop
        when the servers are back; `facts`: what the servers were seen to do (rowferry.reports.facts).
        """
        self._facts = dict(facts)
        self.plan, self.name = plan, plan.name
        self.clients: dict[SideName, ObjectClient] = {}
        self._cluster = cluster
        self._bounds: dict[SideName, Bound] = {
            side.name: Bound(partial(cluster.share_of, bound))
            for side in plan.sides
            if (bound := side.max_requests_per_second) is not None
        }
        self._buckets: dict[SideName, str] = {side.name: name_bucket(side) for side in plan.sides}
        self.bodies = bodies
        self._settings: dict[str, QueueSettings] = {}
        self._entries: dict[str, EntryQueries] = {}
        self._updatable: set[str] = set()
        self._allowed: set[tuple[str, str]] = set()
        """The conditions of queues that call nothing that they may not, by label."""
        keys = {name: str(self._facts[name]) for name in (READABLE, WRITTEN) if name in self._facts}
        self.evidence = Evidence(readable=keys.get(READABLE), written=keys.get(WRITTEN))
        """What the copies so far tell of both servers."""
        self._on_return = on_return
        self._detectors: list[SilenceDetector] = []
        self._watches: list[Future[None]] = []

    def add_client(self, name: SideName, client: ObjectClient) -> None:
        """Use a side from now on, and watch whether its server is there."""
        detector = SilenceDetector(client, self._note_return)
        self._detectors.append(detector)
        self._watches.append(event_loop.submit(detector.watch()))
        self.clients[name] = client

    def read_settings(self, spec: QueueSpec) -> QueueSettings:
        """Return the plan's [queue.NAME] of a queue. Raises PlanError where it is not as the queue understands it."""
        if spec.name not in self._settings:
            self._settings[spec.name] = spec.read_settings(self.plan)
        return self._settings[spec.name]

    @cached_property
    def copying(self) -> CopyOptions:
        """How objects are copied, where a batch says nothing else, and what was learned of the servers by that."""
        legacy, production = self.plan.legacy, self.plan.production
        return CopyOptions(
            choose_method(self.plan, self.bodies),
            ConditionalWriteSupport(production.bucket),
            properties=Properties(production, tagging=Tagging(production.tags, self._facts)),
            clocks=Clocks(NO_SKEW if legacy.server == production.server else None),
        )

    def list_news(self) -> list[str]:
        """Return what the copies have shown of the buckets that no one was told yet."""
        keeps_others = "copying" in self.__dict__ and self.copying.properties.keeps_others
        news = [KEPT_OTHERS] if keeps_others and not self._facts.get(KEPT_OTHERS) else []
        self._facts |= dict.fromkeys(news, True)
        return news

    def entries(self, connection: Connection, label: str, *, update: bool = False) -> EntryQueries:
        """Return the SQL over the table of the entries that a batch names.

        Raises MigrationFault when the plan or the table no longer has them; with `update` also when this role may not
        update them, which is checked once for each table, before objects are copied in vain.
        """
        queries = self._entries.get(label)  # once: another slot may forget all of them at any moment
        if queries is None:
            found = next((entries for entries in self.plan.entries if entries.label == label), None)
            if found is None:
                raise MigrationFault(f"The plan of migration {self.plan.name} has no entries {label}.")
            queries = EntryQueries.of(connection, found)
            refuse_functions(connection, queries, list_expressions(queries))
            self._entries[label] = queries
        if update and label not in self._updatable:
            queries.check(connection, update=True)
            self._updatable.add(label)
        return queries

    def refuse_condition(self, connection: Connection, queries: EntryQueries, condition: str | None) -> None:
        """Raise MigrationFault where a queue's own condition calls what it may not; asked once for each table."""
        if condition is not None and (queries.entries.label, condition) not in self._allowed:
            refuse_functions(connection, queries, [queries.meets(condition)])
            self._allowed.add((queries.entries.label, condition))

    def forget_entries(self) -> None:
        """Look tables up again: one of them may have been changed."""
        self._entries.clear()
        self._updatable.clear()
        self._allowed.clear()

    def send(self, request: Request) -> Awaitable[Response]:
        """Send a request to the side that it is for."""
        return self.clients[request.side].send(request)

    def requests(self, scheduler: CopyScheduler) -> ObjectRequests:
        """Return what sends requests at the scheduler's pace and within the plan's bounds."""
        return ObjectRequests(self.send, RequestPace(scheduler, self._bounds, self._buckets))

    def find_lanes(self, side: SideName, operation: str) -> tuple[ObjectClient, str] | None:
        """Return what lanes of an operation take: the client and the key of its rate; None: the plan has a bound."""
        if side in self._bounds:
            return None
        return self.clients[side], f"{self._buckets[side]} {operation}"

    def holds_rows_enough(self, row_counts: Sequence[int]) -> bool:
        """Return whether claimed batches with so many rows each keep `max_rows_per_second` busy for ROWS_AHEAD.

        Two always may be claimed: the objects of one are copied while the rows of the other wait.
        """
        bound = self.plan.database.max_rows_per_second
        if bound is None or len(row_counts) < 2:
            return False
        return sum(row_counts) >= self._cluster.share_of(bound) * ROWS_AHEAD.total_seconds()

    def is_away(self) -> bool:
        """Return whether one of the servers was found to be away, and has not responded since."""
        return any(detector.is_away for detector in self._detectors)

    def _note_return(self) -> None:
        if not self.is_away():
            self._on_return()

    def is_held_up(self) -> bool:
        """Return whether the plan's `max_replica_lag` forbids more work for now."""
        max_lag = self.plan.database.max_replica_lag
        return max_lag is not None and self._cluster.is_behind(max_lag)

    def close(self) -> None:
        """Close the connections; requests in flight end."""
        for watch in self._watches:
            watch.cancel()
        for client in self.clients.values():
            client.close()


class MigrationContextCache:
    """The migrations of a worker process, opened when a batch first needs them and again when their plan changes."""

    def __init__(
        self, parallel: int, cluster: ClusterState | None = None, request_deadline: timedelta = REQUEST_DEADLINE
    ) -> None:
        """`parallel`: objects in flight, which bounds the connections to each side."""
        self._parallel = parallel
        self._request_deadline = request_deadline
        self._cluster = cluster or ClusterState()
        self._bodies = BodyBudget(choose_bodies_budget(count_processes()))
        self._open: dict[tuple[int, int], MigrationContext] = {}
        self._turn = Lock()
        self._opening: dict[tuple[int, int], Lock] = {}
        self.on_return: Callable[[int], None] = lambda _: None
        """Called on the event loop with the id of a migration whose servers are back."""

    def away(self) -> list[int]:
        """Return the ids of the migrations one of whose servers is away; of several revisions the newest counts."""
        opened = list(self._open.items())  # at once: another slot may be opening one
        newest = {number: migration for (number, _), migration in sorted(opened, key=lambda item: item[0][1])}
        return [number for number, migration in newest.items() if migration.is_away()]

    def at_row_bound(self, claimed: Iterable[Batch]) -> list[int]:
        """Return the ids of the migrations whose bound on rows the claimed batches of this process use up for now.

        The bound of a migration that is not open yet is not known: its first batch opens it.
        """
        row_counts: dict[tuple[int, int], list[int]] = defaultdict(list)
        for batch in claimed:
            row_counts[batch.migration_id, batch.revision].append(batch.entry_count)
        return [
            known[0]
            for known, rows in row_counts.items()
            if (migration := self._open.get(known)) is None or migration.holds_rows_enough(rows)
        ]

    def find(
        self, connection: Connection, batch: Batch, sides: Iterable[SideName] = BOTH, queue: QueueSpec | None = None
    ) -> MigrationContext:
        """Return the migration of a batch, with these sides open, and those that the plan says for its queue.

        Raises UsageError when this worker cannot work on it: credentials are missing, or a bucket is not there;
        QueueUnusable where that is so of this queue alone.
        """
        known = (batch.migration_id, batch.revision)
        with self._turn:
            opening = self._opening.setdefault(known, Lock())
        with opening:  # only who works on the same migration waits for its servers
            migration = self._open.get(known)
            if migration is None:
                row = fetch_one(connection, statement("load_migration"), {"id": batch.migration_id})
                plan = parse_plan(row["plan"], f"of migration {row['name']}")
                on_return = partial(self.on_return, batch.migration_id)
                migration = MigrationContext(plan, self._cluster, self._bodies, on_return, row["facts"])
            try:
                self._open_sides(migration, sorted(_choose_sides(migration, sides, queue) - migration.clients.keys()))
            except RowferryError:
                if known not in self._open:
                    migration.close()
                raise
            self._open[known] = migration
            return migration

    def close(self) -> None:
        """Close every migration."""
        for migration in self._open.values():
            migration.close()

    def _open_sides(self, migration: MigrationContext, names: Sequence[SideName]) -> None:
        """Add a client of each side, asked for side by side. Raises what the first that cannot be used ends with."""
        if not names:
            return
        with ThreadPoolExecutor(len(names)) as pool:
            opened: dict[SideName, Future[ObjectClient]] = {
                name: pool.submit(self._open_client, migration.plan, name) for name in names
            }
        for name, client in opened.items():
            if client.exception() is None:
                migration.add_client(name, client.result())
        for client in opened.values():
            client.result()

    def _open_client(self, plan: Plan, name: SideName) -> ObjectClient:
        """Return a client of a bucket that is there and ours; a server that is away for now is waited for."""
        side = plan.side(name)
        max_body_bytes = min(STREAM_PART_BYTES, plan.migration.multipart_threshold_bytes or STREAM_PART_BYTES)
        refuse_foreign_endpoint(side, os.environ)
        client = open_object_client(
            side, max_in_flight=self._parallel, deadline=self._request_deadline, max_body_bytes=max_body_bytes
        )
        try:
            check_bucket(client, side)
        except ObjectError as error:
            if isinstance(error, BucketNotFound) or not error.retryable:
                client.close()
                raise UsageError(f"The {side.name} bucket {side.bucket} cannot be used: {error}.") from error
        return client


def _choose_sides(migration: MigrationContext, sides: Iterable[SideName], queue: QueueSpec | None) -> set[SideName]:
    """Return the sides that a batch needs. Raises QueueUnusable where the plan and its queue do not fit."""
    if queue is None:
        return set(sides)
    try:
        chosen = queue.find_sides(migration.read_settings(queue)).union(sides)
        return {migration.plan.side(name).name for name in sorted(chosen)}  # the first that is missing is told
    except PlanError as error:
        raise QueueUnusable(str(error)) from error


def choose_method(plan: Plan, bodies: BodyBudget | None = None) -> CopyMethod:
    """Return how the plan's objects are copied; storage classes only where both sides know the same ones."""
    threshold_bytes = plan.migration.multipart_threshold_bytes
    if plan.server_side:
        return ServerCopy(plan.legacy.bucket, threshold_bytes, requester_pays=plan.legacy.requester_pays)
    same_provider = plan.legacy.server == plan.production.server
    tls_connections = sum(side.has_tls for side in (plan.legacy, plan.production))
    return StreamCopy(
        keep_class=same_provider, threshold_bytes=threshold_bytes, bodies=bodies, tls_connections=tls_connections
    )
