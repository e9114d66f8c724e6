"""What every queue promises (rowferry_worker/queues.py), held against each that is installed here, plug-ins as well."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from threading import get_ident

import psycopg
import pytest

from queue_conformance.crash_injector import STEPS
from queue_conformance.fixture import QueueFixture
from queue_conformance.fixtures import find_fixture
from queue_conformance.stand import Stand, look_at_transaction
from queue_conformance.steps import timed_steps
from rowferry.batch import Entry, Outcome, Performed
from rowferry.queues import find_queue, list_queues
from rowferry_worker.batch.context import BatchContext, BatchReleased, Perform
from support.entries.migration import Migration
from support.processes.processes import run_to_end
from support.queue.at_work import working
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, running_fakes

COUNT = 7
SPOILED = 4
POISON = 3
ALIKE = {"inspect", "revert", "tag", "verify"}
"""Our queues that work on rows as `migrate` does, whose slower tests are nightly; those of a plug-in run each time."""
OURS = {"migrate", "parts", *ALIKE}
"""What halves their batches is the same statement, held to it by tests/worker/batch/test_poison.py."""
KILLED_AT_MANY_STEPS = "migrate"
"""The queue whose workers die at many steps: what surrounds a perform is the same for all queues."""
KILLED_BY_DAY = {"after the work", "before COMMIT", "in COMMIT", "after COMMIT"}
"""The steps at which they die in each run."""
KILLED_ONCE = "after the work"
"""Where the workers of the others die: all is written to S3 then, and no row."""
LONGEST_STEP_SECONDS = 0.1
"""Of CPU time, which no load adds to: a hundred times what a coroutine may compute."""


each_unlike_queue = pytest.mark.by_day(*(queue for queue in list_queues() if queue not in ALIKE))


@pytest.fixture(params=list_queues())
def fixture(request: pytest.FixtureRequest) -> QueueFixture:
    return find_fixture(request.param)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeAddress]:
    with running_fakes(Deviations()) as (fake,):
        yield fake


@pytest.fixture
def count() -> int:
    """How many entries there are."""
    return COUNT


@pytest.fixture
def stand(
    fixture: QueueFixture,
    count: int,
    fake: FakeAddress,
    make_migration: Callable[..., Migration],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stand]:
    """Entries that are prepared, and not in the queue yet."""
    with fresh_buckets(fake) as buckets:
        stand = Stand(fixture, make_migration(buckets, buckets), count)
        stand.prepare(monkeypatch)
        yield stand


def test_a_queue_without_a_fixture_is_told_what_to_add() -> None:
    with pytest.raises(LookupError, match=r"no fixture.*rowferry\.queue_fixtures"):
        find_fixture("unheard_of")


def test_every_fixture_is_of_its_queue(fixture: QueueFixture) -> None:
    assert find_queue(fixture.spec.name) is fixture.spec


SPECIFICATIONS_ALONE = """
import json, sys
from rowferry.queues import find_queue
seen = {}
for queue in sys.argv[1:]:
    find_queue(queue)
    seen[queue] = [name for name in sys.modules if name.startswith(("rowferry_worker", "boto"))]
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Which modules of workers are loaded by the specification of each queue, and those before it."""
    done = run_to_end([sys.executable, "-c", SPECIFICATIONS_ALONE, *list_queues()])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_specification_needs_nothing_of_workers(fixture: QueueFixture, loaded: dict[str, list[str]]) -> None:
    """Enqueuer, check and reports import it where no worker can run."""
    assert loaded[fixture.spec.name] == []


def test_a_queue_has_words_for_all_that_it_says(fixture: QueueFixture) -> None:
    counts = dict.fromkeys(("finished", "updated", *Outcome), "7")
    for words in filter(None, (fixture.spec.words, fixture.spec.words_alone)):
        assert set(words.outcomes) == set(Outcome)
        assert words.deed.format(**counts) != words.deed
    assert fixture.spec.summary.endswith(".")


def test_all_entries_are_done_once_and_a_second_run_changes_nothing(stand: Stand) -> None:
    """As when an operator puts a finished batch back."""
    with stand.enqueued(), working(stand.queue) as worker:
        worker.work()
        stand.check_done()
        assert [attempt["verdict"] for attempt in stand.attempts()] == ["DONE"]
        before = stand.look(), stand.objects()
        stand.put_back()
        worker.work()
        assert len(worker.given) == 2
    assert (stand.look(), stand.objects()) == before
    assert {batch["status"] for batch in stand.batches()} == {"DONE"}
    stand.check_balance()


@each_unlike_queue
def test_a_run_that_is_rolled_back_ends_the_next_time_as_it_would_have(stand: Stand) -> None:
    """All was done, and the connection was lost before the COMMIT."""

    def lose_connection(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        performed = perform(context, entries)
        stand.terminate(context.connection.info.backend_pid)
        return performed

    with stand.enqueued(), working(stand.queue) as worker:
        assert worker.take_turn(lose_connection)
        worker.state.ledger.flush()
        assert [attempt["verdict"] for attempt in stand.attempts()] == ["LOST"]
        stand.make_due()
        worker.work()
        assert worker.given[0] == worker.given[1]
    stand.check_done()


@each_unlike_queue
def test_a_batch_that_is_given_back_costs_no_attempt(stand: Stand) -> None:
    def release(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        perform(context, entries)
        raise BatchReleased("the suite wants it back")

    with stand.enqueued(), working(stand.queue) as worker:
        worker.take_turn(release)
        assert [batch["attempts"] for batch in stand.batches()] == [0]
        worker.work()
    assert [attempt["verdict"] for attempt in stand.attempts()] == ["RELEASED", "DONE"]
    assert [batch["attempts"] for batch in stand.batches()] == [1]
    stand.check_done()


@each_unlike_queue
def test_a_worker_that_must_end_gives_the_batch_back_or_finishes_it(stand: Stand) -> None:
    """`perform` raises BatchReleased where it waits, and nothing else; nothing is lost either way."""
    with stand.enqueued(), working(stand.queue) as worker:
        worker.state.give_up.set()
        worker.take_turn()
        assert stand.attempts()[0]["verdict"] in {"RELEASED", "DONE"}
        worker.state.give_up.clear()
        worker.work()
    stand.check_done()


def test_perform_neither_commits_nor_writes_to_the_tables_of_rowferry(stand: Stand) -> None:
    """And opens only the buckets that are named; without any there are neither buckets in the plan nor credentials."""
    opened: list[set[str]] = []

    def look_on(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        before, thread = look_at_transaction(context.connection), get_ident()
        connect = psycopg.Connection.connect

        def refuse(*arguments: object, **named: object) -> psycopg.Connection:
            assert get_ident() != thread, "perform opened a connection of its own"
            return connect(*arguments, **named)  # pyright: ignore[reportArgumentType]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg.Connection, "connect", refuse)
            performed = perform(context, entries)
        assert look_at_transaction(context.connection) == before
        opened.append(set(context.migration.clients))
        return performed

    with stand.enqueued(), working(stand.queue) as worker:
        worker.take_turn(look_on)
    assert opened == [stand.sides], stand.batches()
    stand.check_done()


def test_each_entry_has_one_result(stand: Stand) -> None:
    counted: list[tuple[list[str], list[str]]] = []

    def count(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        performed = perform(context, entries)
        ended = [result.entry.id for result in performed.results]
        left = {entry.id for entry in performed.rest} - {*ended}
        counted.append((sorted(entry.id for entry in entries), sorted([*ended, *left])))
        return performed

    stand.spoil(SPOILED)
    with stand.enqueued(), working(stand.queue, parallel=1, time_budget=timedelta(0)) as worker:
        worker.work(count)
    assert counted
    for given, found in counted:
        assert found == given


@each_unlike_queue
def test_one_entry_that_fails_spoils_no_other(stand: Stand) -> None:
    stand.spoil(SPOILED)
    with stand.enqueued(), working(stand.queue) as worker:
        worker.work()
    stand.check_done(but=[SPOILED])
    (failure,) = stand.failures()
    assert stand.fixture.number_of(failure["entry_id"]) == SPOILED
    assert failure["reason"]
    assert failure["error"]
    report = json.loads(stand.migration.run("report", "--json").stdout)
    assert report["balances"]


@each_unlike_queue
def test_a_retry_does_only_what_was_left(stand: Stand) -> None:
    """What the last attempt left, where the queue says so; else what still has the form."""
    if stand.fixture.spec.retries_unsettled:
        left = stand.fail_one_and_retry()
        stand.check_done()
    else:
        left = stand.spoil_one_and_requeue(SPOILED)
        stand.check_done(but=[SPOILED])
    assert stand.given[1] == left


@each_unlike_queue
def test_each_settled_entry_is_handed_on_once(stand: Stand) -> None:
    """However often a batch is tried."""
    stand.add_following("sink")
    stand.spoil_one_and_requeue(SPOILED)
    stand.check_done(but=[SPOILED])
    handed_on = sorted(stand.handed_on())
    assert handed_on == [number for number in range(1, COUNT + 1) if number != SPOILED]


@each_unlike_queue
def test_what_the_time_budget_does_not_suffice_for_is_put_back(stand: Stand) -> None:
    with stand.enqueued(), working(stand.queue, parallel=1, time_budget=timedelta(0)) as worker:
        worker.work()
        assert len(worker.given) > 1 or not stand.sides
    assert {attempt["verdict"] for attempt in stand.attempts()} <= {"DONE", "RELEASED"}
    stand.check_done()


@each_unlike_queue
def test_no_coroutine_computes_for_long(stand: Stand) -> None:
    stand.fixture.make_heavy(stand.migration, SPOILED)
    with stand.enqueued(), timed_steps() as steps, working(stand.queue) as worker:
        worker.work()
    assert bool(steps) == bool(stand.sides)
    assert max(steps, default=0) < LONGEST_STEP_SECONDS


@each_unlike_queue
def test_rows_are_written_in_the_order_of_their_keys(stand: Stand) -> None:
    """Two batches of one queue cannot deadlock then."""
    stand.log_writes()
    with stand.enqueued(), working(stand.queue) as worker:
        worker.work(stand.reversed)
    written = stand.written()
    assert bool(written) == bool(stand.fixture.writes)
    assert written == sorted(written)


def mark_kill(queue: str, step: str) -> list[pytest.MarkDecorator]:
    """Return the mark of what tells little that the kills of another queue do not."""
    by_day = KILLED_BY_DAY if queue == KILLED_AT_MANY_STEPS else {KILLED_ONCE} if queue not in ALIKE else set()
    return [] if step in by_day else [pytest.mark.soak]


@pytest.mark.parametrize(
    ("fixture", "step"),
    [pytest.param(queue, step, marks=mark_kill(queue, step)) for queue in list_queues() for step in STEPS],
    indirect=["fixture"],
)
def test_a_worker_that_is_killed_leaves_nothing_undone_and_nothing_doubled(stand: Stand, step: str) -> None:
    with stand.enqueued():
        died = stand.run_doomed(step)
        if step == "between requests":
            assert died == bool(stand.sides)
        elif step != "after a statement":  # a queue may execute none
            assert died
        stand.run_worker()
    stand.check_done()


@pytest.mark.parametrize(
    "fixture",
    [pytest.param(queue, marks=[pytest.mark.soak] if queue in OURS else []) for queue in list_queues()],
    indirect=True,
)
@pytest.mark.parametrize("count", [3])
def test_an_entry_that_kills_workers_ends_up_alone(stand: Stand) -> None:
    with stand.enqueued():
        poison = next(entry for entry in stand.read_entry_ids() if stand.fixture.number_of(entry) == POISON)
        deaths = 0
        while stand.run_poisoned(poison):
            deaths += 1
            assert deaths < 20, "a poison loop"
    assert deaths
    stand.check_done(but=[POISON])
    (failed,) = [batch for batch in stand.batches() if batch["status"] == "ERROR"]
    assert failed["entry_count"] == 1
    assert "the worker died" in failed["error"]
