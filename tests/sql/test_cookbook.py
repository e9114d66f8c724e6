"""Every statement of docs/sql.md, run by psql against a queue in the state that it is for: it does what it promises."""

import csv
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from rowferry.batch import Verdict
from rowferry.db.connection import connect
from rowferry_worker.batch.claim import claim_batch
from support.checkout import ROOT
from support.entries.entry_table import EntryTable
from support.postgres.servers import find_psql
from support.processes.processes import wait_for
from support.queue.queue_states import HOPELESS, Actor, Held, acting, denied, missing

PAGE = ROOT / "docs" / "sql.md"
BLOCK = re.compile(r"^(?:<!-- state: (?P<state>[a-z-]+) -->\n)?```sql\n(?P<sql>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One statement of the page."""

    title: str
    state: str | None
    sql: str


def read_recipes() -> list[Recipe]:
    """Return the recipes of the page, in order; each has a heading of its own."""
    recipes: list[Recipe] = []
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = part.splitlines()[0].strip()
        recipes += [Recipe(title, found["state"], found["sql"]) for found in BLOCK.finditer(part)]
    return recipes


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

    def psql(self, sql: str, folder: Path) -> Rows:
        """Run SQL as an operator does, and return the rows of its last answer."""
        variables = {"migration": "avatars", "batch": str(self.batch), "worker": FIRST, "host": "fra-2"}
        settings = [f"--set={name}={value}" for name, value in variables.items()]
        ended = subprocess.run(
            [find_psql(), "-X", "-q", "--csv", "--set=ON_ERROR_STOP=1", *settings, self.table.dsn],
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

    def claim(self) -> int | None:
        """Return the batch that a worker would get now; it is given back at once."""
        with connect("worker test") as connection:
            batch = claim_batch(connection, ["migrate"])
            return batch.id if batch else None


@contextmanager
def running(table: EntryTable) -> Iterator[Scene]:
    """Batch 1 is done, 2 is claimed on fra-1, 3 on fra-2, and 4 to 6 wait."""
    table.add_legacy(range(1, 61)).enqueue(10)
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
        yield scene


@contextmanager
def some_errors(table: EntryTable) -> Iterator[Scene]:
    """1 is done; in ERROR are 2 (two objects missing, fra-1), 3 (access denied, fra-2, yesterday) and 4 (as a whole,
    fra-2); 5 rests after a failure; 6 waits.
    """
    table.add_legacy(range(1, 61)).enqueue(10)
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
    table.add_legacy(range(1, 31)).enqueue(10)
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
    table.add_legacy(range(1, 51)).enqueue(10)
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


def check_due(scene: Scene, rows: Rows, folder: Path) -> None:
    assert not scene.table.execute("select from rowferry.batch_queue where status = 'INIT' and run_after > now()")
    assert scene.table.batches()[4]["attempts"] == 1


def check_export(scene: Scene, rows: Rows, folder: Path) -> None:
    with (folder / "never-migrated.csv").open() as lines:
        exported = list(csv.DictReader(lines))
    assert [(row["entries"], row["entry_id"], row["outcome"]) for row in exported] == [
        ("public.avatars.path", "11", "missing"),
        ("public.avatars.path", "12", "missing"),
        ("public.avatars.path", "21", "failed"),
    ]


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


def check_ended(scene: Scene, rows: Rows, folder: Path, *, ended: int) -> None:
    """One of batches 2 and 3 is free, and the other one goes on."""
    assert [row["ended"] for row in rows] == ["t"]
    wait_until_free(scene.table, ended)
    assert scene.claim() == ended
    actor, held = (scene.second, scene.held[1]) if ended == 2 else (scene.first, scene.held[0])
    actor.finish(held)
    assert scene.statuses()[held.batch.id] == "DONE"


def check_revert(scene: Scene, rows: Rows, folder: Path) -> None:
    """Batch 5 alone is of the last hour."""
    command = "rowferry revert --table public.avatars.path --first 41 --last 50"
    assert [row["command"] for row in rows] == [command]


Promise = Callable[[Scene, Rows, Path], None]


def check_requeue(*batches: int) -> Promise:
    return lambda scene, rows, folder: requeued(scene, *batches)


PROMISES: dict[str, Promise] = {
    "Export the failed entries": check_export,
    "Retry them now": check_due,
    "All of a migration": check_requeue(2, 3, 4),
    "One batch": check_requeue(2),
    "By error": check_requeue(3),
    "By the reason of an entry": check_requeue(2),
    "By host": check_requeue(3, 4),
    "By time": check_requeue(2, 4),
    "Cancel waiting batches": check_cancel,
    "Split a batch in two": check_split,
    "Release the batches of a worker": partial(check_ended, ended=2),
    "Release all batches of a host": partial(check_ended, ended=3),
    "Requeue the batches of a queue": check_requeue(2, 3, 4),
    "Revert an hour's rows": check_revert,
}
"""What is not said by a view or done by a function, which have tests of their own."""


QUEUE = """
select m::text as row from rowferry.migration as m
union all select q::text from rowferry.queue as q
union all select b::text from rowferry.batch_queue as b
order by 1
"""


@pytest.mark.parametrize("state", STATES)
def test_a_recipe_does_what_it_promises(
    state: str, table: EntryTable, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Each finds rows or changes some, and keeps its promise."""
    for recipe in read_recipes():
        if recipe.state != state:
            continue
        table.execute("truncate rowferry.migration, rowferry.batch_attempt, rowferry.worker restart identity cascade")
        table.execute("truncate public.avatars")
        with subtests.test(recipe.title), STATES[state](table) as scene:
            before = table.execute(QUEUE)
            rows = scene.psql(recipe.sql, tmp_path)
            if promise := PROMISES.get(recipe.title):
                promise(scene, rows, tmp_path)
            else:
                assert rows or table.execute(QUEUE) != before
    table.close()


def test_every_statement_of_the_page_is_a_recipe_with_a_state() -> None:
    recipes = read_recipes()
    assert len(recipes) == len(re.findall(r"^```sql$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {recipe.title for recipe in recipes} >= PROMISES.keys()
    assert {recipe.state for recipe in recipes} == set(STATES)
