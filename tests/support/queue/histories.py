"""What became of a queue: random steps of workers, operators and clocks, each taken by rowferry's own functions."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from psycopg import sql
from psycopg.types.json import Jsonb

from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import call, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import judge, write_failure, write_verdict
from rowferry_worker.ledger import Ledger
from support.screens.readers import open_readers

MIGRATIONS = ("m", "n")
QUEUES = ("migrate", "verify", "tag")
WORKERS = ("web-01:11:a", "web-01:12:b", "web-02:21:c")
PATTERNS = (None, "NoSuchKey", "%Access%", "set to ERROR by hand%")
PARK = """
update rowferry.batch_queue set status = 'ERROR' where id = (
    select min(q.id) from rowferry.batch_queue as q inner join rowferry.migration as m on q.migration_id = m.id
    where m.name = %s and q.status in ('INIT', 'DONE')
    and not exists (select from rowferry.batch_attempt as a where a.batch_id = q.id and a.finished_at is null)
)
"""
EMPTIED = "batch_attempt entry_failure batch_queue batch_tally worker event pass queue migration"
LOCK = "select from rowferry.batch_queue where id = %s for update"
CLOCKS = {
    "batch_tally": ("started_at", "finished_at"),
    "entry_failure": ("failed_at",),
    "batch_queue": ("run_after", "created_at", "started_at", "finished_at"),
    "batch_attempt": ("started_at", "finished_at"),
    "worker": ("started_at", "last_seen_at", "reported_at", "stopped_at"),
    "event": ("at",),
    "pass": ("began_at", "since", "watermark"),
    "queue": ("paused_at",),
    "migration": ("paused_at", "created_at", "updated_at"),
}
"""What is set back so that time has passed. Tallies come before the tables whose triggers add to them."""

FAILURES = {
    "missing": ("NoSuchKey", "NoSuchKey: gone"),
    "conflict": ("different object", "another object is there"),
    "failed": ("AccessDenied", "AccessDenied: Access Denied"),
}


@dataclass(frozen=True)
class Plan:
    """What a plan says of its queues, by name."""

    name: str
    queues: dict[str, dict[str, Any]]


def queues_of(*chain: str, bound: int | None = None) -> dict[str, dict[str, Any]]:
    """Return a chain of queues, the last with a bound."""
    following = {name: {"next": [later]} for name, later in pairwise(chain)}
    return {name: following.get(name, {} if bound is None else {"max_claimed": bound}) for name in chain}


PLANS = (
    Plan("one queue", queues_of("migrate")),
    Plan("chain", queues_of("migrate", "verify")),
    Plan("long chain", queues_of("migrate", "verify", "tag", bound=1)),
    Plan("apart", {"migrate": {}, "verify": {"priority": 1}, "tag": {"weight": 2.5}}),
    Plan("fork", {"migrate": {"next": ["verify", "tag"]}, "verify": {}, "tag": {}}),
    Plan("nothing said", {}),
)

Step = tuple[str, dict[str, Any]]

_migrations, _queues, _workers = (st.sampled_from(names) for names in (("m", "m", "n"), QUEUES, WORKERS))
_some = st.one_of(st.none(), _queues)
_outcomes = st.lists(
    st.sampled_from(("migrated", "kept", "kept", "changed", "deleted", *FAILURES)), min_size=1, max_size=4
)


def _step(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


_add = _step(
    "add", migration=_migrations, queue=_queues, items=st.integers(1, 9), size=st.integers(1, 4), again=st.booleans()
)
_come = _step("come", worker=_workers, queues=st.sampled_from((QUEUES, QUEUES, ("migrate",), ("tag",))))
_work = _step(
    "work",
    worker=_workers,
    queue=_queues,
    outcomes=_outcomes,
    passing=st.sampled_from(("never", "never", "soon", "outage")),
    hours=st.sampled_from((0, 0, 1)),
)
_wait = _step("wait", seconds=st.sampled_from((12, 45, 240, 420, 7200, 100_000)), alive=st.sets(_workers))
steps = st.one_of(
    _add,
    _add,
    _come,
    _come,
    _work,
    _work,
    _work,
    _wait,
    _wait,
    _step("work_all", worker=_workers, outcomes=_outcomes),
    _step("hold", worker=_workers, queue=_queues, in_hand=st.integers(0, 4)),
    _step("tell", worker=_workers, in_hand=st.integers(0, 4)),
    _step("let_go", worker=_workers),
    _step("fail", worker=_workers, queue=_queues, verdict=st.sampled_from((Verdict.ERROR, Verdict.RETRY))),
    _step("away", worker=_workers, queue=_queues, times=st.integers(2, 4)),
    _step("pause", migration=_migrations, queue=_some, reason=st.sampled_from((None, "Black Friday"))),
    _step("pause_by_worker", migration=_migrations),
    _step("put_off", migration=_migrations, until=st.sampled_from(("'infinity'", "now() + interval '5 min'"))),
    _step("resume", migration=_migrations, queue=_some),
    _step("requeue", migration=_migrations, queue=_some, pattern=st.sampled_from(PATTERNS)),
    _step("park", migration=_migrations),
    _step("skip", worker=_workers, migration=_migrations, queue=_some),
    _step("leave", worker=_workers),
    _step("begin_pass", migration=_migrations, queue=_queues),
    _step("prune"),
)
_first = _step(
    "add",
    migration=st.just("m"),
    queue=st.just("migrate"),
    items=st.integers(1, 30),
    size=st.integers(1, 9),
    again=st.booleans(),
)
histories = st.tuples(
    st.sampled_from(PLANS),
    st.builds(
        lambda first, come, later: [first, come, *later], _first, _come, st.lists(steps, min_size=2, max_size=20)
    ),
)


class World:
    """A database in which histories happen, one after the other."""

    def __init__(self) -> None:
        """Connect to the database of DATABASE_URL."""
        self.until = ExitStack()
        self.operator = self.until.enter_context(closing(connect("operator", autocommit=True)))
        self.operator.execute("set jit = off")  # it compiles the triggers' views for longer than they take
        self.ledger = self.until.enter_context(closing(Ledger("history")))
        self.sessions = {name: self.until.enter_context(closing(connect(f"worker {name}"))) for name in WORKERS}
        self.readers = self.until.enter_context(closing(open_readers()))
        self.held: dict[str, tuple[Batch, Attempt]] = {}
        self.items = 0

    def close(self) -> None:
        self.until.close()

    def live_through(self, plan: Plan, history: Sequence[Step]) -> None:
        """Empty the database, and take the steps of a history."""
        for session in self.sessions.values():
            session.rollback()
        self.held.clear()
        for table in EMPTIED.split():
            self.operator.execute(sql.SQL("delete from rowferry.{}").format(sql.Identifier(table)))
        for name, queues in zip(MIGRATIONS, (plan.queues, {}), strict=True):
            document = Jsonb({"migration": {"name": name}})
            call(self.operator, "register_migration", name, document, Jsonb(queues))
        for name, arguments in history:
            step: Callable[..., None] = getattr(self, name)
            step(**arguments)

    # The operator, and an application

    def add(self, migration: str, queue: str, items: int, size: int, *, again: bool) -> None:
        """Put items in a queue, of a pass that reads settled ones `again` or not."""
        first, self.items = self.items, self.items + items
        rows = Jsonb([{"id": str(number)} for number in range(first, self.items)])
        choices = Jsonb({"read_again": ["migrated", "kept"], "on_conflict": "fail"}) if again else None
        call(self.operator, "enqueue_items", migration, queue, rows, size, choices)
        call(self.operator, "record_pass", *self._find_migration(migration))

    def _find_migration(self, name: str) -> tuple[int, int]:
        (row,) = self.operator.execute("select id, revision from rowferry.migration where name = %s", (name,))
        return row["id"], row["revision"]

    def begin_pass(self, migration: str, queue: str) -> None:
        """Begin another pass: batches in ERROR that are read again are due again."""
        migration_id, revision = self._find_migration(migration)
        call(self.operator, "begin_pass", migration_id, "items", True, queue)
        call(self.operator, "renew_batches", migration_id, queue, Jsonb({"read_again": ["migrated", "kept"]}))
        call(self.operator, "record_pass", migration_id, revision)

    def pause(self, migration: str, queue: str | None, reason: str | None) -> None:
        call(self.operator, "set_pause", True, migration, queue, reason)

    def pause_by_worker(self, migration: str) -> None:
        call(self.operator, "pause_migration", self._find_migration(migration)[0], "The bucket is gone.")

    def resume(self, migration: str, queue: str | None) -> None:
        call(self.operator, "set_pause", False, migration, queue)

    def requeue(self, migration: str, queue: str | None, pattern: str | None) -> None:
        call(self.operator, "requeue", None, pattern, migration, queue)

    def park(self, migration: str) -> None:
        """Set a batch to ERROR by hand, as an operator may."""
        self.operator.execute(PARK, (migration,))

    def put_off(self, migration: str, until: str) -> None:
        """Defer what waits, as an operator may."""
        change = (
            f"update rowferry.batch_queue set run_after = {until} where id in ("
            "select q.id from rowferry.batch_queue as q inner join rowferry.migration as m on q.migration_id = m.id "
            "where m.name = %s and q.status = 'INIT' for update of q skip locked)"
        )
        self.operator.execute(change.encode(), (migration,))

    def prune(self) -> None:
        call(self.operator, "prune_batches", timedelta(minutes=3), 3)

    def wait(self, seconds: int, alive: set[str]) -> None:
        """Let time pass: whoever is `alive` goes on to send heartbeats. Workers hold what they have held before."""
        for worker in self.held:
            self.sessions[worker].rollback()
        for table, columns in CLOCKS.items():
            earlier = [
                sql.SQL("{0} = {0} - make_interval(secs => %(seconds)s)").format(sql.Identifier(column))
                for column in columns
            ]
            change = sql.SQL("update rowferry.{} set {}").format(sql.Identifier(table), sql.SQL(", ").join(earlier))
            self.operator.execute(change, {"seconds": seconds})
        for worker, (batch, _) in self.held.items():
            self.sessions[worker].execute(LOCK, (batch.id,))
        for worker in sorted(alive):
            if known := self.operator.execute(
                "select queues from rowferry.worker where id = %s and stopped_at is null", (worker,)
            ).fetchone():
                self.come(worker, known["queues"])

    # Workers

    def come(self, worker: str, queues: Sequence[str]) -> None:
        """Send a heartbeat."""
        host, pid, _ = worker.split(":")
        self.ledger.call("heartbeat", worker, host, int(pid), "0.1.0", 2, 64, list(queues))

    def leave(self, worker: str) -> None:
        self.let_go(worker)
        self.ledger.call("update_worker", worker, Jsonb({"stopped": True}))

    def skip(self, worker: str, migration: str, queue: str | None) -> None:
        key = " ".join([str(self._find_migration(migration)[0]), *([queue] if queue else [])])
        self.ledger.call("update_worker", worker, Jsonb({"unusable": {key: "No such bucket"}}))

    def work(self, worker: str, queue: str, outcomes: Sequence[str], passing: str, hours: int) -> bool:
        """Claim a batch, give its entries these outcomes in turn, and commit; return whether there was one."""
        claimed = self._claim(worker, queue)
        if claimed is None:
            return False
        batch, attempt = claimed
        results = [
            _give(entry, outcomes[place % len(outcomes)], passing) for place, entry in enumerate(_find_entries(batch))
        ]
        judged = judge(results, attempt.number, batch.max_attempts)
        wait = timedelta(hours=hours)
        write_verdict(self.sessions[worker], batch, attempt, Judgement(judged.verdict, wait, judged.error), results)
        self.sessions[worker].commit()
        return True

    def work_all(self, worker: str, outcomes: Sequence[str]) -> None:
        """Go through all that is due, in all queues."""
        for queue in QUEUES:
            for _ in range(9):
                if not self.work(worker, queue, outcomes, "never", 0):
                    break

    def fail(self, worker: str, queue: str, verdict: Verdict) -> None:
        """Fail a batch as a whole."""
        if claimed := self._claim(worker, queue):
            write_failure(self.sessions[worker], *claimed, Judgement(verdict, timedelta(0), "No such bucket"))
            self.sessions[worker].commit()

    def away(self, worker: str, queue: str, times: int) -> None:
        """Put batches back without a result, as while a server is away."""
        for _ in range(times):
            self.work(worker, queue, ["failed"], "outage", 0)

    def hold(self, worker: str, queue: str, in_hand: int) -> None:
        """Claim a batch and keep it, with so many of its entries settled."""
        if claimed := self._claim(worker, queue):
            self.held[worker] = claimed
            self.tell(worker, in_hand)

    def tell(self, worker: str, in_hand: int) -> None:
        if worker in self.held:
            batch, attempt = self.held[worker]
            settled = min(in_hand, len(_find_entries(batch)))
            self.ledger.call("update_worker", worker, Jsonb({"in_hand": {attempt.id: settled}}))

    def let_go(self, worker: str) -> None:
        """Put the batch back that is kept."""
        if worker in self.held:
            _, attempt = self.held.pop(worker)
            self.sessions[worker].rollback()
            self.ledger.call("end_attempt", attempt.id, "RELEASED", "the worker was told to stop")

    def _claim(self, worker: str, queue: str) -> tuple[Batch, Attempt] | None:
        """Claim a batch in the session of a worker, which puts back what it had, and record the attempt."""
        self.let_go(worker)
        self.come(worker, QUEUES)
        session = self.sessions[worker]
        batch = claim_batch(session, [queue])
        if batch is None:
            session.rollback()
            return None
        return batch, begin_attempt(self.ledger, batch, worker)


def _find_entries(batch: Batch) -> list[str]:
    """Return the ids that an attempt reads: what the last one has left, else what was handed on, else all items."""
    left, only = batch.payload.get("unsettled"), batch.payload.get("only")
    return [str(item) for item in (left if left is not None else only or [i["id"] for i in batch.payload["items"]])]


def _give(entry: str, outcome: str, passing: str) -> EntryResult:
    """Return the outcome of an entry; a failure passes `never`, `soon`, or as an `outage` does."""
    reason, error = FAILURES.get(outcome, ("", ""))
    retryable, costs = passing != "never", passing != "outage"
    return EntryResult(Entry(entry, f"image/{entry}"), Outcome(outcome), 10, reason, error, retryable, costs)
