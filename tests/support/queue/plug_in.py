"""A package of somebody else, installed for one test: queues that rowferry does not know."""

import os
import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest

from rowferry import queues
from rowferry_worker import queues as worker_queues
from support.entries.entry_table import EntryTable
from support.entries.migration import to_toml

QUEUES = """
from rowferry.batch import Outcome
from rowferry.plan import QueueSettings
from rowferry.queue_spec import QueueSpec, TableUse, Words

WORDS = Words(
    outcomes={
        Outcome.MIGRATED: "noted", Outcome.KEPT: "noted before", Outcome.CHANGED: "changed", Outcome.DELETED: "deleted",
        Outcome.MISSING: "nothing to note", Outcome.CONFLICT: "noted otherwise", Outcome.FAILED: "any other error",
    },
    deed="noted {migrated}",
)


class NoteSettings(QueueSettings, frozen=True, kw_only=True):
    column: str | None = None
    into: str = "public.notes"


def read_columns(settings, entries):
    return (settings.column,) if settings.column else ()


def use_tables(settings, plan):
    columns = ("queue", "id", "value")
    return (TableUse(settings.into, selects=columns, inserts=columns, updates=("value",)),)


def make(name, **more):
    return QueueSpec(
        name=name, perform="notes_work:perform", summary=f"Note each entry, as {name} does.", words=WORDS,
        sources=frozenset({"table", "items"}), settings=NoteSettings, columns=read_columns, tables=use_tables,
        **more,
    )


NOTE = make("note", check="notes_work:check")
ECHO = make("echo")
ITEMS = QueueSpec(
    name="items_alone", perform="notes_work:perform", summary="Note items.", words=WORDS,
    sources=frozenset({"items"}), settings=NoteSettings, tables=use_tables,
)
"""

WORK = """
from rowferry.batch import EntryResult, Outcome, Performed
from rowferry_enqueue.checks.finding import fine, problem


def perform(context, entries):
    results = []
    for entry in entries:
        value = entry.values[0] if entry.values else None
        if isinstance(value, dict):
            value = value.get("value")
        if value == "bad":
            results.append(EntryResult(entry, Outcome.FAILED, reason="bad value", error="the value is bad"))
            continue
        context.connection.execute(
            "insert into public.notes as n (queue, id, value) values (%s, %s, %s) "
            "on conflict (queue, id) do update set value = excluded.value, times = n.times + 1",
            (context.queue.spec.name, entry.id, value),
        )
        results.append(EntryResult(entry, Outcome.MIGRATED))
    return Performed(results)


def check(context):
    if context.settings.column == "odd":
        yield problem("the column is odd", "name an even one")
    yield fine(f"{context.spec.name} looks at {len(context.entries)} tables, {len(context.tables)} readable")
"""

NOTES = "create table public.notes (queue text, id text, value text, times int default 1, primary key (queue, id))"

POINTS = {"note": "notes_queues:NOTE", "echo": "notes_queues:ECHO", "items_alone": "notes_queues:ITEMS"}
FAULTY = {"faulty": "notes_missing:FAULTY"}


class PlugIn:
    """Installs that package for this process and those that it starts, as long as the test runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "notes_queues.py").write_text(QUEUES)
        (folder / "notes_work.py").write_text(WORK)
        monkeypatch.syspath_prepend(folder)
        path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
        self.install("notes", POINTS)

    def install(self, package: str, points: dict[str, str], group: str = queues.GROUP) -> None:
        """Install a package of this name, version 1.5, with these entry points."""
        info = self.folder / f"{package}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        forget()

    def uninstall(self) -> None:
        """Forget the modules that this process has loaded from it: another test's may have the same names."""
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                del sys.modules[name]
        forget()


def forget() -> None:
    """Look for queues anew, in this process."""
    invalidate_caches()
    queues.forget_queues()
    worker_queues.find_queue.cache_clear()


def write_plan(table: EntryTable, folder: Path, queue: dict[str, dict[str, object]]) -> None:
    """Write the plan of the table's queues, without sides, to the file that commands read."""
    table.plan = {name: table.plan[name] for name in ("migration", "entries")} | {"queue": queue}
    tables = {name: said for name, said in table.plan.items() if name != "queue"}
    settings = {f"queue.{name}": said for name, said in queue.items()}
    (folder / "rowferry.toml").write_text(to_toml(tables | settings), encoding="utf-8")


def notes(table: EntryTable) -> dict[str, int]:
    """Return how often each queue has noted something, each id once."""
    rows = table.execute("select queue, count(*) as ids, sum(times) as times from public.notes group by queue")
    assert all(row["ids"] == row["times"] for row in rows)
    return {row["queue"]: row["ids"] for row in rows}
