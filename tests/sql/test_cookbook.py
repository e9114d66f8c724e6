"""Every statement of docs/sql.md, run by psql against a queue in the state that it is for: it does what it promises."""

import csv
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rowferry.batch import Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.waiting_lines import WaitingLines
from support.docs.cookbook import PAGE, count_blocks, read_recipes
from support.entries.entry_table import EntryTable
from support.postgres.servers import find_psql
from support.processes.processes import wait_for
from support.queue.queue_states import HOPELESS, Actor, Held, acting, denied, hold, missing

FIRST, SECOND = "fra-1:4711:9f3c2a", "fra-2:4712:07ab11"

Rows = list[dict[str, str]]


@dataclass
class Scene:
    """A queue in some state, and the workers at it."""

    table: EntryTable
    first: Actor
    second: Actor
    held: list[Held] = field(default_factory=list)
    batch: int = 1
    """What the variable :batch stands for."""
    verifier: Connection | None = None
    """A session that has claimed a batch of the queue `verify`."""

    def psql(self, sql: str, folder: Path) -> Rows:
        """Run SQL as an operator does, and return the rows of its last answer."""
        variables = {"migration": "avatars", "batch": str(self.batch), "worker": FIRST, "host": "fra-2"}
        settings = [f"--set={name}={value}" for name, value in variables.items()]
        ended = subprocess.run(
            [
                find_psql(),
                "-X",
                "-q",
                "--csv",
                "--set=ON_ERROR_STOP=1",
                *settings,
                self.table.dsn,
            ],
            input=sql,
            cwd=folder,
            env={**os.environ, "PGTZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        return list(csv.DictReader(ended.stdout.splitlines()))

    def statuses(self) -> dict[int, str]:
        return {batch["id"]: batch["status"] for batch in self.table.batches()}

    def claim(self, *queues: str, lines: WaitingLines | None = None) -> int | None:
        """Return the batch that a worker would get now; it is given back at once."""
        with connect("worker test") as connection:
            batch = claim_batch(connection, list(queues or ("migrate",)), lines=lines)
            return batch.id if batch else None

    def release(self) -> None:
        """Give the claimed batch of the queue `verify` back."""
        assert self.verifier is not None
        self.verifier.rollback()


# The states


@contextmanager
def running(table: EntryTable) -> Iterator[Scene]:
    """Batch 1 is done, 2 is claimed on fra-1, 3 on fra-2, and 4 to 6 wait."""
    table.add_legacy(range(1, 61))
    table.enqueue(10)
    with acting(table, FIRST, SECOND) as (first, second):
        first.finish(first.claim())
        held = [first.claim(), second.claim()]
        try:
            yield Scene(table, first, second, held)
        finally:
            for one in held:
                one.connection.close()


@contextmanager
def paused(table: EntryTable) -> Iterator[Scene]:
    """The same, and paused."""
    with running(table) as scene:
        table.execute("update rowferry.migration set paused_at = now()")
        yield scene


@contextmanager
def queues(table: EntryTable) -> Iterator[Scene]:
    """As `running`, but 5 and 6 are of the queue `verify`, of which two may be claimed at once, and one is."""
    with running(table) as scene, connect("verify test") as verifier:
        table.execute("update rowferry.batch_queue set queue_name = 'verify' where id in (5, 6)")
        table.execute(
            "insert into rowferry.queue (migration_id, name, max_claimed) "
            "select id, 'verify', 2 from rowferry.migration"
        )
        assert claim_batch(verifier, ["verify"]) is not None
        scene.verifier = verifier
        yield scene


@contextmanager
def some_errors(table: EntryTable) -> Iterator[Scene]:
    """1 is done; in ERROR are 2 (two objects missing, fra-1), 3 (access denied, fra-2, yesterday) and 4 (as a whole,
    fra-2); 5 rests after a failure; 6 waits.
    """
    table.add_legacy(range(1, 61))
    table.enqueue(10)
    with acting(table, FIRST, SECOND) as (first, second):
        first.finish(first.claim())
        first.finish(first.claim(), failures=[missing(11), missing(12)])
        second.finish(second.claim(), failures=[denied(21)])
        second.fail(second.claim(), HOPELESS)
        first.finish(first.claim(), failures=[denied(41)], verdict=Verdict.RETRY)
        table.execute("update rowferry.batch_queue set finished_at = now() - interval '1 day' where id = 3")
        yield Scene(table, first, second, batch=2)


@contextmanager
def crashed(table: EntryTable) -> Iterator[Scene]:
    """1 has killed two workers, 2 one; both worker hosts are silent by now, and the batches wait."""
    table.add_legacy(range(1, 31))
    table.enqueue(10)
    with acting(table, FIRST, SECOND) as (first, second):
        first.die(first.claim())
        wait_until_free(table, 1)
        one, two = second.claim(), second.claim()
        second.die(one)
        second.die(two)
        wait_until_free(table, 2)
        table.execute("update rowferry.worker set last_seen_at = now() - interval '5 minutes'")
        yield Scene(table, first, second)


@contextmanager
def finished(table: EntryTable) -> Iterator[Scene]:
    """Five batches are done: 1 forty days ago, 2 to 4 three, two and one hours ago, 5 now; 4 took the longest."""
    table.add_legacy(range(1, 51))
    table.enqueue(10)
    with acting(table, FIRST, SECOND) as (first, second):
        for number in range(5):
            actor = (first, second)[number % 2]
            actor.finish(actor.claim())
        table.execute(
            "update rowferry.batch_queue set finished_at = now() - v.ago, started_at = now() - v.ago - v.took "
            "from (values (1, interval '40 days', interval '9 s'), (2, '3 h', '8 s'), (3, '2 h', '7 s'), "
            "(4, '1 h', '90 s')) as v (id, ago, took) where batch_queue.id = v.id"
        )
        yield Scene(table, first, second)


STATES: dict[str, Callable[[EntryTable], AbstractContextManager[Scene]]] = {
    "running": running,
    "paused": paused,
    "queues": queues,
    "some-errors": some_errors,
    "crashed": crashed,
    "finished": finished,
}


def wait_until_free(table: EntryTable, batch: int) -> None:
    """Return when the batch is no longer locked: the server has noticed that its worker is gone."""
    query = "select from rowferry.batch_queue where id = %s for update skip locked"
    wait_for(lambda: table.execute(query, (batch,)))


# What is promised


def requeued(scene: Scene, *batches: int) -> None:
    """Hold these, and no others, to have been put back: due now, with all attempts before them, without failures."""
    was_in_error = {2, 3, 4}
    for batch in scene.table.batches():
        if batch["id"] in was_in_error:
            assert batch["status"] == ("INIT" if batch["id"] in batches else "ERROR"), batch
    for batch in scene.table.batches():
        if batch["id"] in batches:
            assert (batch["attempts"], batch["error"], batch["requeues"]) == (0, None, 1)
            assert not [f for f in scene.table.failures() if f["batch_id"] == batch["id"]]
    assert scene.statuses()[1] == "DONE"
    assert scene.claim() == 6


def check_progress(scene: Scene, rows: Rows, folder: Path) -> None:
    (row,) = rows
    assert (row["entries"], row["waiting"], row["migrated"], row["batches_init"]) == ("60", "50", "10", "5")
    assert float(row["rate_1m"]) > 0
    assert row["time_left"]


def check_resting(scene: Scene, rows: Rows, folder: Path) -> None:
    (row,) = rows
    assert (row["id"], row["attempts"], row["error"]) == ("5", "1", "1 failed (AccessDenied)")
    assert row["due_in"].startswith("00:0")


def check_due(scene: Scene, rows: Rows, folder: Path) -> None:
    assert not scene.table.execute("select from rowferry.batch_queue where status = 'INIT' and run_after > now()")
    assert scene.table.batches()[4]["attempts"] == 1


def check_reasons(scene: Scene, rows: Rows, folder: Path) -> None:
    found = {(row["outcome"], row["reason"]): (row["entries"], row["batches"], row["example_key"]) for row in rows}
    assert found == {
        ("failed", str(HOPELESS)): ("10", "1", ""),
        ("missing", "NoSuchKey"): ("2", "1", "image/u11/me.png"),
        ("failed", "AccessDenied"): ("1", "1", "image/u21/me.png"),
    }


def check_verdicts(scene: Scene, rows: Rows, folder: Path) -> None:
    assert [tuple(row.values()) for row in rows] == [
        ("fra-1", "DONE", "1"),
        ("fra-1", "ERROR", "1"),
        ("fra-1", "RETRY", "1"),
        ("fra-2", "ERROR", "2"),
    ]


def check_export(scene: Scene, rows: Rows, folder: Path) -> None:
    with (folder / "never-migrated.csv").open() as lines:
        exported = list(csv.DictReader(lines))
    assert [(row["entries"], row["entry_id"], row["outcome"]) for row in exported] == [
        ("public.avatars.path", "11", "missing"),
        ("public.avatars.path", "12", "missing"),
        ("public.avatars.path", "21", "failed"),
    ]


def check_more_attempts(scene: Scene, rows: Rows, folder: Path) -> None:
    requeued(scene, 2, 3, 4)
    assert [batch["max_attempts"] for batch in scene.table.batches()] == [5, 10, 10, 10, 5, 5]


def check_pause(scene: Scene, rows: Rows, folder: Path) -> None:
    assert scene.claim() is None
    for actor, held in zip((scene.first, scene.second), scene.held, strict=True):
        actor.finish(held)
    assert scene.statuses() == {1: "DONE", 2: "DONE", 3: "DONE", 4: "INIT", 5: "INIT", 6: "INIT"}


def check_resume(scene: Scene, rows: Rows, folder: Path) -> None:
    assert scene.claim() == 4


def check_pause_queue(scene: Scene, rows: Rows, folder: Path) -> None:
    assert scene.claim() is None
    assert scene.claim("migrate", "verify") == 6


def check_priority(scene: Scene, rows: Rows, folder: Path) -> None:
    assert {scene.claim("migrate", "verify") for _ in range(6)} == {6}
    assert scene.claim("migrate") == 4


def check_weight(scene: Scene, rows: Rows, folder: Path) -> None:
    scene.release()
    known = WaitingLines()
    claimed = [scene.claim("migrate", "verify", lines=known) for _ in range(40)]
    assert 8 <= claimed.count(4) <= 12
    assert set(claimed) == {4, 5}


def check_limit(scene: Scene, rows: Rows, folder: Path) -> None:
    scene.release()
    with connect("worker test") as first:
        assert claim_batch(first, ["verify"]) is not None
        assert scene.claim("verify") is None
    assert scene.claim("verify") == 5


def check_cancel(scene: Scene, rows: Rows, folder: Path) -> None:
    assert scene.statuses() == {1: "DONE", 2: "INIT", 3: "INIT"}
    scene.first.finish(scene.held[0])
    assert scene.statuses()[2] == "DONE"
    legacy = [path for path in scene.table.rows().values() if path and path.startswith("image/")]
    assert len(legacy) == 40
    assert scene.table.enqueue(10)[0].entries == 30


def check_split(scene: Scene, rows: Rows, folder: Path) -> None:
    batches = {batch["id"]: batch for batch in scene.table.batches()}
    first, second = batches[2], batches[7]
    assert (first["status"], second["status"]) == ("INIT", "INIT")
    assert (first["payload"]["first"], first["payload"]["last"]) == ("11", "11")
    assert (second["payload"]["first"], second["payload"]["last"]) == ("12", "20")
    assert (first["entry_count"], first["migrated"], second["entry_count"]) == (9, 8, 1)
    assert scene.table.enqueue(10)[0].entries == 0
    scene.table.execute("update rowferry.batch_queue set run_after = '2000-01-01' where id in (2, 7)")
    for _ in range(2):
        scene.first.finish(scene.first.claim())
    assert (scene.statuses()[2], scene.statuses()[7]) == ("DONE", "DONE")
    assert {scene.table.rows()[number] for number in ("11", "12")} == {"avatar/u11/me.png", "avatar/u12/me.png"}


def check_worker_ended(scene: Scene, rows: Rows, folder: Path) -> None:
    assert [row["ended"] for row in rows] == ["t"]
    wait_until_free(scene.table, 2)
    assert scene.claim() == 2
    scene.second.finish(scene.held[1])
    assert scene.statuses()[3] == "DONE"


def check_host_ended(scene: Scene, rows: Rows, folder: Path) -> None:
    assert [row["ended"] for row in rows] == ["t"]
    wait_until_free(scene.table, 3)
    assert scene.claim() == 3
    scene.first.finish(scene.held[0])
    assert scene.statuses()[2] == "DONE"


def check_hours(scene: Scene, rows: Rows, folder: Path) -> None:
    assert sum(int(row["batches"]) for row in rows) == 4
    assert sum(int(row["entries"]) for row in rows) == 40
    assert [row["hour"] for row in rows] == sorted(row["hour"] for row in rows)
    assert len(rows) == 4


def check_crashes(scene: Scene, rows: Rows, folder: Path) -> None:
    assert [(row["batch_id"], row["crashes"], row["host"], row["status"]) for row in rows] == [
        ("1", "2", "fra-2", "INIT"),
        ("2", "1", "fra-2", "INIT"),
    ]
    assert scene.claim() == 1


def check_oldest(scene: Scene, rows: Rows, folder: Path) -> None:
    names = [row["application_name"] for row in rows]
    assert names[0] == f"rowferry worker {FIRST}"
    assert f"rowferry worker {SECOND}" in names
    with ExitStack() as until:
        forgotten = until.enter_context(hold(scene.table.dsn))
        recipe = next(recipe for recipe in read_recipes() if recipe.title == "The oldest transactions")
        rows = scene.psql(recipe.sql, folder)
        assert "a forgotten session" in [row["application_name"] for row in rows]
        forgotten.rollback()


def check_bloat(scene: Scene, rows: Rows, folder: Path) -> None:
    assert {"batch_queue", "batch_attempt", "entry_failure", "worker", "migration"} <= {row["relname"] for row in rows}


def check_prune(scene: Scene, rows: Rows, folder: Path) -> None:
    assert set(scene.statuses()) == {2, 3, 4, 5}
    assert {attempt["batch_id"] for attempt in scene.table.attempts()} == {2, 3, 4, 5}


Promise = Callable[[Scene, Rows, Path], None]

OF_TABLE = {"queue_name": "migrate", "label": "public.avatars.path", "entries": "60", "waiting": "50"}
VERIFY = {"migration": "avatars", "queue": "verify", "max_claimed": "2"}
ALL: dict[str, Rows] = {
    "Progress of each table": [OF_TABLE | {"per_cent": "16.7"}],
    "Batches that stopped as a whole": [{"id": "4", "attempts": "1", "worker_id": SECOND, "error": str(HOPELESS)}],
    "Priority, weight and limit of the queues": [
        VERIFY | {"priority": "0", "weight": "1", "paused_at": "", "next": "{}"},
    ],
    "How full the limited queues are": [VERIFY | {"taken": "1"}],
}
"""What a statement tells, to the last column."""
SOME: dict[str, Rows] = {
    "Claimed batches and their hosts": [
        {"batch_id": "2", "host": "fra-1", "pid": "4711", "entries": "public.avatars.path"},
        {"batch_id": "3", "host": "fra-2", "pid": "4712", "entries": "public.avatars.path"},
    ],
    "Hosts and their workers": [
        {"host": host, "live": "1", "lost": "0", "claimed_batches": "1"} for host in ("fra-1", "fra-2")
    ],
    "The queues of a chain": [
        {"position": "1", "queue_name": "migrate", "waiting": "30", "claimed": "2"},
        {
            "position": "2",
            "queue_name": "verify",
            "pending": "20",
            "is_slowest": "t",
            "max_claimed": "2",
            "time_left": "",
        },
    ],
    "Failed entries": [
        {"batch_id": batch, "entry_id": entry, "outcome": outcome}
        for batch, entry, outcome in (("2", "11", "missing"), ("2", "12", "missing"), ("3", "21", "failed"))
    ],
    "The slowest batches": [
        {"batch_id": "4", "host": "fra-2", "duration": "00:01:30", "first_id": "31", "last_id": "40"},
        *({"batch_id": batch, "host": host} for batch, host in (("2", "fra-2"), ("3", "fra-1"), ("5", "fra-1"))),
    ],
    "The history of one batch": [
        {"attempt": "1", "worker_id": FIRST, "verdict": "ERROR", "error": "2 missing (NoSuchKey)"},
    ],
}
"""What it tells in the columns that matter."""


def check_all(expected: Rows) -> Promise:
    return lambda scene, rows, folder: compare(rows, expected)


def check_some(expected: Rows) -> Promise:
    return lambda scene, rows, folder: compare(
        [{name: row[name] for name in wanted} for row, wanted in zip(rows, expected, strict=True)], expected
    )


def compare(rows: Rows, expected: Rows) -> None:
    assert rows == expected


def check_requeue(*batches: int) -> Promise:
    return lambda scene, rows, folder: requeued(scene, *batches)


LOOKS: dict[str, Promise] = {
    **{title: check_all(rows) for title, rows in ALL.items()},
    **{title: check_some(rows) for title, rows in SOME.items()},
    "Progress, rate and time left": check_progress,
    "Batches that wait for their next attempt": check_resting,
    "Errors by reason": check_reasons,
    "Verdicts by host": check_verdicts,
    "Export the failed entries": check_export,
    "Progress by hour": check_hours,
    "Attempts of dead workers": check_crashes,
    "The oldest transactions": check_oldest,
    "Bloat": check_bloat,
}
"""What changes nothing: one scene does for all of a state."""
CHANGES: dict[str, Promise] = {
    "Retry them now": check_due,
    "All of a migration": check_requeue(2, 3, 4),
    "One batch": check_requeue(2),
    "By error": check_requeue(3),
    "By the reason of an entry": check_requeue(2),
    "By host": check_requeue(3, 4),
    "By time": check_requeue(2, 4),
    "With more attempts": check_more_attempts,
    "Pause": check_pause,
    "Resume": check_resume,
    "Cancel waiting batches": check_cancel,
    "Split a batch in two": check_split,
    "Release the batches of a worker": check_worker_ended,
    "Release all batches of a host": check_host_ended,
    "Pause a queue": check_pause_queue,
    "Let a queue go first": check_priority,
    "Give a queue a larger share": check_weight,
    "Limit how many batches of a queue are claimed at once": check_limit,
    "Requeue the batches of a queue": check_requeue(2, 3, 4),
    "Prune": check_prune,
}


@pytest.mark.parametrize("state", STATES)
def test_a_recipe_does_what_it_promises(
    state: str, table: EntryTable, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    recipes = [recipe for recipe in read_recipes() if recipe.state == state]
    with STATES[state](table) as scene:
        for recipe in recipes:
            if recipe.title in LOOKS:
                with subtests.test(recipe.title):
                    LOOKS[recipe.title](scene, scene.psql(recipe.sql, tmp_path), tmp_path)
    for recipe in recipes:
        if recipe.title in CHANGES:
            table.execute(
                "truncate rowferry.migration, rowferry.batch_attempt, rowferry.worker restart identity cascade"
            )
            table.execute("truncate public.avatars")
            with subtests.test(recipe.title), STATES[state](table) as scene:
                CHANGES[recipe.title](scene, scene.psql(recipe.sql, tmp_path), tmp_path)
    table.close()


def test_every_statement_of_the_page_is_a_recipe_with_a_state_and_a_promise() -> None:
    recipes = read_recipes()
    assert len(recipes) == count_blocks(PAGE.read_text(encoding="utf-8"))
    assert sorted(recipe.title for recipe in recipes) == sorted([*LOOKS, *CHANGES])
    assert {recipe.state for recipe in recipes} == set(STATES)


@pytest.mark.versions
def test_the_states_balance(table: EntryTable) -> None:
    with some_errors(table):
        table.check_balance()
    table.close()
