"""What each screen says of a migration and of its queues, as facts that can be held against one another.

All read in one transaction, so that no clock goes on between two of them: commands and the exporter get a connection
that leads there.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import click
import psycopg
import pytest
from click.testing import CliRunner

import rowferry.db.connection
from drawing.queries import View
from rowferry.db.connection import Connection, connect
from rowferry_cli.observe import errors, queues, status
from rowferry_cli.report import command as report
from rowferry_cli.status.state import show_state
from rowferry_cli.watch import command as watch
from rowferry_exporter.collector import read_views as read_exported
from rowferry_exporter.metrics import describe
from support.screens.grafana import FOLDER
from support.screens.report_pages import PageReader

Facts = dict[str, Any]
"""By name. One of a queue is named `queue: fact`."""
PLAN = """
[migration]
name = "{}"
[legacy]
bucket = "legacy"
[production]
bucket = "production"
[[entries]]
table = "public.avatars"
id = "id"
key = "path"
from = "image/"
to = "avatar/"
"""
OUTCOMES = ("migrated", "kept", "changed", "deleted", "missing", "conflict", "failed")


class SharedConnection:
    """A connection that several readers have, each as if it were its own."""

    def __init__(self, connection: Connection) -> None:
        self.__dict__["_connection"] = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __setattr__(self, name: str, value: object) -> None:
        assert name == "isolation_level", "the only setting of theirs, and it is so already"

    def __enter__(self) -> "SharedConnection":
        return self

    def __exit__(self, *_: object) -> None:
        """Stay open for the next."""

    def close(self) -> None:
        """Stay open for the next."""


@dataclass
class Moment:
    """One moment of a database, and who looks at it."""

    shared: SharedConnection
    folder: Path
    queues: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Of each migration, in the order of its chain: known once its views are read."""
    end: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(seconds=5))

    def rows(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        return self.shared.execute(query.encode(), parameters or None).fetchall()

    def board(self, name: str, migration: str, *, queue: str = "") -> list[dict[str, Any]]:
        """Return the answer to a query of the boards, of one queue or of all."""
        names = self.queues[migration]
        view = View(
            self.end - timedelta(days=30),
            self.end,
            {"migration": [migration], "queue": [queue] if queue else names},
            600,
        )
        return self.rows(view.expand_sql((FOLDER / "queries" / f"{name}.sql").read_text(encoding="utf-8")))

    def run(self, command: click.Command, *words: str) -> str:
        """Return what a command says; it may exit with 1, as where something is left to do."""
        done = CliRunner().invoke(command, words, catch_exceptions=False, standalone_mode=False, env={"COLUMNS": "200"})
        return done.stdout

    def run_json(self, command: click.Command, *words: str) -> Any:
        return json.loads(self.run(command, "--json", *words))


def open_readers() -> Connection:
    """Return a connection for `look`. One for all moments: views are planned once, and prepared."""
    connection = connect("readers")
    connection.execute("set jit = off")
    connection.commit()
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.prepare_threshold = 2
    return connection


@contextmanager
def look(connection: Connection, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Moment]:
    """Yield one moment of a database."""
    with patch.context() as patched:
        shared = SharedConnection(connection)
        patched.setattr(rowferry.db.connection, "connect", lambda *_, **__: shared)
        yield Moment(shared, folder)
        connection.rollback()


def take(row: Mapping[str, Any], same: str = "", queue: str = "", **columns: str) -> Facts:
    """Return facts of a row, of one queue or of the whole: in columns of the `same` names, and by fact in others."""
    facts = {fact: row[column] for fact, column in ({name: name for name in same.split()} | columns).items()}
    return {f"{queue}: {fact}": value for fact, value in facts.items()} if queue else facts


def of_queue(name: str, **facts: Any) -> Facts:
    return {f"{name}: {fact}": value for fact, value in facts.items()}


# What is so: the two views.


STATE = "state since cause what_to_do held_by"
QUEUE = "state is_slowest entries waiting in_hand entries_left batches_left unsettled claimed"
BATCHES = ("batches_init", "batches_done", "batches_error")


def read_views(moment: Moment, migration: str) -> Facts:
    (whole,) = moment.rows(
        "select *, extract(epoch from now() - still_since)::float8 as still, paused_at is not null as is_paused "
        "from rowferry.migration_state where migration = %(m)s",
        m=migration,
    )
    workers = moment.rows("select host, count(*) as live from rowferry.live_workers group by host")
    (heard,) = moment.rows("select count(*) as workers from rowferry.live_workers where not is_silent")
    numbers = {"done": "done_share", "left": "waiting", "rate": "rate_1m", "need": "needs_operator"}
    same = f"{STATE} seconds_left ends_at batches_init passes is_paused still"
    facts = take(whole, same, **numbers) | {"live": {row["host"]: row["live"] for row in workers}} | heard
    rows = moment.rows(
        f"select s.*, {', '.join(f'p.{outcome}' for outcome in OUTCOMES)} from rowferry.queue_status as s "
        "left join rowferry.progress as p using (migration_id, queue_name) where s.migration = %(m)s order by position",
        m=migration,
    )
    facts["queues"] = moment.queues[migration] = [row["queue_name"] for row in rows]
    for row in rows:
        name = row["queue_name"]
        same = f"{QUEUE} failed_share due_since pause_reason"
        facts |= take(row, same, name, **numbers | {"left": "pending_left"})
        facts |= of_queue(
            name,
            batches=tuple(row[column] for column in BATCHES),
            seconds_left=None if row["time_left"] is None else row["time_left"].total_seconds(),
            is_paused=row["paused_at"] is not None,
            outcomes=tuple(row[outcome] or 0 for outcome in OUTCOMES),
        )
    return facts


# Who says so.


def read_rows(state: Facts, rows: Sequence[Facts]) -> Facts:
    """Return what the rows of the views say, as a command prints them in JSON."""
    facts: Facts = {}
    if state:
        renamed = {"need": "needs_operator", "done": "done_share", "left": "waiting"}
        facts = take(state, f"{STATE} passes", **renamed) | {"since": datetime.fromisoformat(state["since"])}
    for row in rows:
        name = row["queue"]
        renamed = {"done": "done_share", "rate": "rate_1m", "need": "needs_operator", "seconds_left": "time_left"}
        facts |= take(row, f"{QUEUE} pause_reason", name, **renamed)
        facts |= of_queue(
            name,
            batches=tuple(row[column] for column in BATCHES),
            outcomes=tuple(row[outcome] for outcome in OUTCOMES),
            due_since=row["due_since"] and datetime.fromisoformat(row["due_since"]),
            is_paused=row["paused_at"] is not None,
        )
    return facts


def read_status(moment: Moment, migration: str) -> Facts:
    plan = moment.folder / f"{migration}.toml"
    plan.write_text(PLAN.format(migration), encoding="utf-8")
    words = ("--no-objects", "--plan", str(plan))
    told, said = moment.run_json(status.command, *words), moment.run(status.command, *words)
    assert f"State: {show_state(told['state'])}" in said
    assert (told["what_to_do"] in said) or told["state"] == "done"
    assert f"Workers alive: {told['workers']:,}" in said
    return read_rows(told, told["queues"]) | take(told, "seconds_left workers")


def read_queues(moment: Moment, migration: str) -> Facts:
    rows = [row for row in moment.run_json(queues.command)["queues"] if row["migration"] == migration]
    return read_rows({}, rows) | {"queues": [row["queue"] for row in rows]}


def read_errors(moment: Moment, migration: str) -> Facts:
    return sum_errors(moment.run_json(errors.command, "--migration", migration), "queue_name")


def sum_errors(rows: Sequence[Facts], queue: str) -> Facts:
    """Return the entries of reasons, in all and by queue."""
    facts: Facts = {"in_error": sum(row["entries"] for row in rows)}
    for name in {row[queue] for row in rows}:
        facts |= of_queue(name, in_error=sum(row["entries"] for row in rows if row[queue] == name))
    return facts


def read_watch(moment: Moment, migration: str) -> Facts:
    """Read the numbers off the view that `rowferry watch --once` prints."""
    said = moment.run(watch.command, "--once", "--migration", migration)
    lines = said.splitlines()
    facts: Facts = {"said": " ".join(said.split())}
    if "The queue is empty." not in said:
        facts["word"] = re.split(r"\s{2,}", lines[0].strip())[-2]
    table = re.compile(r"^([> ]) (\w+) +(\d+%)? +([\d,]+) +([\d,]+)(?:/\d+)? +([\d.,]+) ")
    for line in lines:
        if found := table.match(line):
            _, name, share, waiting, claimed, rate = found.groups()
            facts |= of_queue(name, percent=share, entries_left=_number(waiting), claimed=_number(claimed))
            facts[f"{name}: shown rate"] = rate
    (sums,) = [line for line in lines if " batches done" in line]
    found = re.search(
        r"(?:(\w+): )?([\d,]+) of ([\d,]+) batches done(?: · ([\d,]+) in ERROR)?(?: · ([\d.,]+) entries/s)?", sums
    )
    assert found is not None, sums
    facts["sums"] = (found[1], _number(found[2]), _number(found[3]), _number(found[4] or "0"), found[5])
    return facts


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def read_report(moment: Moment, migration: str) -> Facts:
    """Read both forms of the report; its page as a tree of elements."""
    path = moment.folder / "page.html"
    told = moment.run_json(report.command, "--migration", migration, "--html", str(path))
    page = PageReader(path.read_text(encoding="utf-8"))
    facts = read_rows(told, told["queues"])
    assert told["balances"]
    facts["attempts"] = sum(table["attempts"] for table in told["tables"])
    for table in told["tables"]:  # one each: all items have one label
        facts |= of_queue(
            table["queue"],
            batches=tuple(table[column] for column in BATCHES),
            entries=table["entries"],
            waiting=table["waiting"] + table["parked"],
            outcomes=tuple(table[outcome] for outcome in OUTCOMES),
        )
    facts["title"] = page.find("title")[0].text
    boxes = len([one for one in page.find("div") if one.attributes.get("class", "").startswith("tile ")])
    names = [one.text for one in page.find("dt")][:boxes]
    values = [one.text for one in page.find("dd", class_="value")]
    facts["tiles"] = dict(zip(names, values, strict=True))
    return facts


def read_exporter(moment: Moment, migration: str) -> Facts:
    families = describe(read_exported(cast("Connection", moment.shared)).rows)
    samples = [sample for family in families for sample in family.samples]
    mine = [sample for sample in samples if sample.labels.get("migration") == migration]

    def gauge(name: str, **labels: str) -> Any:
        found = [one.value for one in mine if one.name == f"rowferry_{name}" and labels.items() <= one.labels.items()]
        assert len(found) <= 1, (name, labels)
        return found[0] if found else None

    def gauges(prefix: str, names: str, **labels: str) -> Facts:
        """Return metrics whose names behind the prefix are those of facts, or `fact=name`."""
        pairs = [name.partition("=") for name in names.split()]
        return {fact: gauge(f"{prefix}_{metric or fact}", **labels) for fact, _, metric in pairs}

    queues = {one.labels["queue"] for one in mine if "queue" in one.labels}
    (state,) = [one.labels["state"] for one in mine if one.name == "rowferry_migration_state" and one.value]
    causes = [one.labels["cause"] for one in mine if one.name == "rowferry_migration_cause" and one.value]
    facts: Facts = {
        "queues": sorted(queues, key=lambda name: gauge("queue_position", queue=name) or 0),
        "state": state,
        "cause": causes[0] if causes else "",
        "is_paused": gauge("migration_paused") == 1,
        "live": {one.labels["host"]: one.value for one in samples if one.name == "rowferry_live_workers" and one.value},
    }
    facts |= gauges(
        "migration",
        "since=state_since_timestamp_seconds ends_at=estimated_end_timestamp_seconds done=done_ratio left=entries_left "
        "need=needs_operator seconds_left still=still_seconds",
    )
    assert (gauge("migration_done") == 1) == (state == "done")
    assert (gauge("migration_paused_by_worker") == 1) == (facts["cause"] == "worker")
    for name in facts["queues"]:
        names = (
            "waiting=entries_waiting in_hand=entries_in_hand rate=entries_per_second claimed=claimed_batches entries"
        )
        facts |= of_queue(
            name,
            **gauges("queue", names, queue=name),
            batches=tuple(gauge("queue_batches", queue=name, status=one) for one in ("INIT", "DONE", "ERROR")),
            is_paused=gauge("queue_paused", queue=name) == 1,
            outcomes=tuple(gauge("queue_outcomes", queue=name, outcome=one) for one in OUTCOMES),
        )
    return facts


def read_board_now(moment: Moment, migration: str) -> Facts:
    """Read the six numbers, which are of the migration whichever queue is chosen."""
    found = [moment.board("now", migration, queue=queue) for queue in ("", *moment.queues[migration][-1:])]
    ((row,), *others) = found
    six = ("state", "since", "done", "left", "speed", "time left", "ends at", "need an operator")
    for (other,) in others:
        assert {name: other[name] for name in six} == {name: row[name] for name in six}
    renamed = {"done in tenths": "done", "rate": "speed", "seconds_left": "time left", "need": "need an operator"}
    return take(row, "state left", **renamed) | {
        "ends_at": None if row["ends at"] is None else row["ends at"] / 1000,
        "all outcomes": tuple(row[outcome] or 0 for outcome in OUTCOMES),
        "all batches": tuple(row[status] or 0 for status in ("INIT", "DONE", "ERROR")),
    }


def read_board_migrations(moment: Moment, migration: str) -> Facts:
    rows = moment.board("migrations_table", migration)
    assert [row["migration"] for row in rows] == [row["migration"] for row in moment.board("migrations", migration)]
    (row,) = [row for row in rows if row["▶"] == "▶"]
    assert row["migration"] == migration
    renamed = {"done in tenths": "done", "left": "entries left", "rate": "entries/s", "need": "need an operator"}
    facts = take(row, "state since passes", **renamed, ends_at="ends at")
    return facts | {"advice": (row["what holds it"], row["type this"])}


def read_board_queues(moment: Moment, migration: str) -> Facts:
    rows = moment.board("queues_table", migration)
    facts: Facts = {"queues": [row["queue"] for row in rows]}
    variable = moment.board("queues", migration)
    assert facts["queues"] == [row["queue_name"] for row in variable], "what the variable offers"
    for row in rows:
        renamed = {"done in tenths": "done", "rate": "entries/s", "seconds_left": "time left", "unsettled": "failed"}
        facts |= take(row, "left claimed", row["queue"], **renamed)
        facts |= of_queue(
            row["queue"],
            state="running" if row["state"] == "holds_the_end" else row["state"],
            failed_share=None if row["of finished"] is None else row["of finished"] / 100,
        )
        facts[f"{row['queue']}: holds the end"] = row["state"] == "holds_the_end"
    return facts


def read_board_tables(moment: Moment, migration: str) -> Facts:
    facts: Facts = {}
    for name in moment.queues[migration]:
        for row in moment.board("tables", migration, queue=name):  # one: all items have one label
            renamed = {"done in tenths": "done", "entries_left": "waiting", "unsettled": "failed"}
            facts |= take(row, "entries", name, **renamed)
    return facts


def read_board_errors(moment: Moment, migration: str) -> Facts:
    rows = moment.board("errors", migration)
    for name in moment.queues[migration]:
        assert [row for row in rows if row["queue"] == name] == moment.board("errors", migration, queue=name)
    return dict.fromkeys((f"{name}: in_error" for name in moment.queues[migration]), 0) | sum_errors(rows, "queue")


def read_board_work(moment: Moment, migration: str) -> Facts:
    """Read curves and attempts."""
    facts: Facts = {}
    for name in moment.queues[migration][-1:]:
        drawn = [row["left"] for row in moment.board("speed", migration, queue=name) if row["left"] is not None]
        facts |= {f"{name}: left": drawn[-1]} if drawn else {}
    attempts = (
        "select from rowferry.recent_attempts where migration = %(migration)s and verdict is distinct from 'DONE'"
    )
    failed = moment.board("unsuccessful_attempts", migration)
    assert len(failed) == min(50, len(moment.rows(attempts, migration=migration)))
    return facts


READERS: Mapping[str, Callable[[Moment, str], Facts]] = {
    "rowferry status": read_status,
    "rowferry queues": read_queues,
    "rowferry errors": read_errors,
    "rowferry watch": read_watch,
    "rowferry report": read_report,
    "board: six numbers": read_board_now,
    "board: All migrations": read_board_migrations,
    "board: Queues of the migration": read_board_queues,
    "board: Progress by table": read_board_tables,
    "board: Errors by reason": read_board_errors,
    "board: work": read_board_work,
    "exporter": read_exporter,
}
"""The exporter comes last: its transaction only reads from then on."""
