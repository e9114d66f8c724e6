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


def in_tenths(share: float | None) -> float | None:
    """Return a share in percent as boards write it, rounded down to a tenth."""
    return None if share is None else int(1000 * share) / 10


# What is so: the two views.


def read_views(moment: Moment, migration: str) -> Facts:
    (whole,) = moment.rows(
        "select state, since, cause, what_to_do, held_by, seconds_left, ends_at, done_share, waiting, rate_1m, "
        "needs_operator, batches_init, paused_at, passes from rowferry.migration_state where migration = %(m)s",
        m=migration,
    )
    (still,) = moment.rows(
        "select extract(epoch from now() - still_since)::float8 as still from rowferry.migration_state "
        "where migration = %(m)s",
        m=migration,
    )
    workers = moment.rows("select host, count(*) as live from rowferry.live_workers group by host")
    heard = moment.rows("select count(*) as workers from rowferry.live_workers where not is_silent")
    facts = {
        **still,
        "live": {row["host"]: row["live"] for row in workers},
        **heard[0],
        **{
            name: whole[name]
            for name in ("state", "since", "cause", "what_to_do", "held_by", "seconds_left", "ends_at")
        },
        "done": whole["done_share"],
        "left": whole["waiting"],
        "rate": whole["rate_1m"],
        "need": whole["needs_operator"],
        "batches_init": whole["batches_init"],
        "is_paused": whole["paused_at"] is not None,
        "passes": whole["passes"],
    }
    rows = moment.rows(
        "select s.queue_name, s.state, s.is_slowest, s.batches_init, s.batches_done, s.batches_error, s.entries, "
        "s.waiting, s.in_hand, s.entries_left, s.batches_left, s.pending_left, s.done_share, s.rate_1m, s.time_left, "
        "s.unsettled, s.failed_share, s.needs_operator, s.claimed, s.due_since, s.paused_at, s.pause_reason, "
        "p.migrated, p.kept, p.changed, p.deleted, p.missing, p.conflict, p.failed "
        "from rowferry.queue_status as s left join rowferry.progress as p using (migration_id, queue_name) "
        "where s.migration = %(m)s order by s.position",
        m=migration,
    )
    facts["queues"] = moment.queues[migration] = [row["queue_name"] for row in rows]
    for row in rows:
        name = row["queue_name"]
        facts |= {
            f"{name}: state": row["state"],
            f"{name}: is_slowest": row["is_slowest"],
            f"{name}: batches": (row["batches_init"], row["batches_done"], row["batches_error"]),
            f"{name}: entries": row["entries"],
            f"{name}: waiting": row["waiting"],
            f"{name}: in_hand": row["in_hand"],
            f"{name}: entries_left": row["entries_left"],
            f"{name}: batches_left": row["batches_left"],
            f"{name}: left": row["pending_left"],
            f"{name}: done": row["done_share"],
            f"{name}: rate": row["rate_1m"],
            f"{name}: seconds_left": None if row["time_left"] is None else row["time_left"].total_seconds(),
            f"{name}: unsettled": row["unsettled"],
            f"{name}: failed_share": row["failed_share"],
            f"{name}: need": row["needs_operator"],
            f"{name}: claimed": row["claimed"],
            f"{name}: due_since": row["due_since"],
            f"{name}: is_paused": row["paused_at"] is not None,
            f"{name}: pause_reason": row["pause_reason"],
            f"{name}: outcomes": tuple(row[outcome] or 0 for outcome in OUTCOMES),
        }
    return facts


# Who says so.


STATE = ("state", "cause", "what_to_do", "held_by")
COUNTED = (
    "state",
    "is_slowest",
    "entries",
    "waiting",
    "in_hand",
    "entries_left",
    "batches_left",
    "unsettled",
    "claimed",
)


def read_rows(state: Facts, rows: Sequence[Facts]) -> Facts:
    """Return what the rows of the views say, as a command prints them in JSON."""
    facts = {name: state[name] for name in STATE if name in state}
    if state:
        facts |= {"since": datetime.fromisoformat(state["since"]), "need": state["needs_operator"]}
        facts |= {"done": state["done_share"], "left": state["waiting"], "passes": state["passes"]}
    for row in rows:
        name = row["queue"]
        facts |= {f"{name}: {column}": row[column] for column in COUNTED} | {
            f"{name}: batches": tuple(row[f"batches_{status}"] for status in ("init", "done", "error")),
            f"{name}: outcomes": tuple(row[outcome] for outcome in OUTCOMES),
            f"{name}: done": row["done_share"],
            f"{name}: rate": row["rate_1m"],
            f"{name}: need": row["needs_operator"],
            f"{name}: seconds_left": row["time_left"],
            f"{name}: due_since": row["due_since"] and datetime.fromisoformat(row["due_since"]),
            f"{name}: is_paused": row["paused_at"] is not None,
            f"{name}: pause_reason": row["pause_reason"],
        }
    return facts


def read_status(moment: Moment, migration: str) -> Facts:
    plan = moment.folder / f"{migration}.toml"
    plan.write_text(PLAN.format(migration), encoding="utf-8")
    words = ("--no-objects", "--plan", str(plan))
    told = moment.run_json(status.command, *words)
    facts = read_rows(told, told["queues"])
    facts["seconds_left"] = told["seconds_left"]
    said = moment.run(status.command, *words)
    assert f"State: {show_state(told['state'])}" in said
    assert (told["what_to_do"] in said) or told["state"] == "done"
    assert f"Workers alive: {told['workers']:,}" in said
    facts["workers"] = told["workers"]
    return facts


def read_queues(moment: Moment, migration: str) -> Facts:
    rows = [row for row in moment.run_json(queues.command)["queues"] if row["migration"] == migration]
    return read_rows({}, rows) | {"queues": [row["queue"] for row in rows]}


def read_errors(moment: Moment, migration: str) -> Facts:
    reasons = moment.run_json(errors.command, "--migration", migration)
    return {"in_error": sum(reason["entries"] for reason in reasons)} | {
        f"{name}: in_error": sum(reason["entries"] for reason in reasons if reason["queue_name"] == name)
        for name in {reason["queue_name"] for reason in reasons}
    }


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
            facts |= {
                f"{name}: percent": share,
                f"{name}: entries_left": _number(waiting),
                f"{name}: claimed": _number(claimed),
                f"{name}: shown rate": rate,
            }
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
        name = table["queue"]
        facts |= {
            f"{name}: batches": tuple(table[f"batches_{status}"] for status in ("init", "done", "error")),
            f"{name}: entries": table["entries"],
            f"{name}: waiting": table["waiting"] + table["parked"],
            f"{name}: outcomes": tuple(table[outcome] for outcome in OUTCOMES),
        }
    facts["title"] = page.find("title")[0].text
    boxes = len([one for one in page.find("div") if one.attributes.get("class", "").startswith("tile ")])
    names = [one.text for one in page.find("dt")][:boxes]
    values = [one.text for one in page.find("dd", class_="value")]
    facts["tiles"] = dict(zip(names, values, strict=True))
    return facts


def read_exporter(moment: Moment, migration: str) -> Facts:
    samples = [
        sample
        for family in describe(read_exported(cast("Connection", moment.shared)).rows)
        for sample in family.samples
    ]
    mine = [sample for sample in samples if sample.labels.get("migration") == migration]

    def gauge(name: str, **labels: str) -> float | None:
        found = [one.value for one in mine if one.name == f"rowferry_{name}" and labels.items() <= one.labels.items()]
        assert len(found) <= 1, (name, labels)
        return found[0] if found else None

    names = sorted(
        {one.labels["queue"] for one in mine if "queue" in one.labels},
        key=lambda q: gauge("queue_position", queue=q) or 0,
    )
    (state,) = [one.labels["state"] for one in mine if one.name == "rowferry_migration_state" and one.value]
    causes = [one.labels["cause"] for one in mine if one.name == "rowferry_migration_cause" and one.value]
    since, ends = gauge("migration_state_since_timestamp_seconds"), gauge("migration_estimated_end_timestamp_seconds")
    facts: Facts = {
        "queues": names,
        "state": state,
        "cause": causes[0] if causes else "",
        "since": since,
        "done": gauge("migration_done_ratio"),
        "left": gauge("migration_entries_left"),
        "need": gauge("migration_needs_operator"),
        "seconds_left": gauge("migration_seconds_left"),
        "ends_at": ends,
        "is_paused": gauge("migration_paused") == 1,
    }
    assert (gauge("migration_done") == 1) == (state == "done")
    assert (gauge("migration_paused_by_worker") == 1) == (facts["cause"] == "worker")
    for name in names:
        facts |= {
            f"{name}: batches": tuple(
                gauge("queue_batches", queue=name, status=one) for one in ("INIT", "DONE", "ERROR")
            ),
            f"{name}: entries": gauge("queue_entries", queue=name),
            f"{name}: waiting": gauge("queue_entries_waiting", queue=name),
            f"{name}: in_hand": gauge("queue_entries_in_hand", queue=name),
            f"{name}: rate": gauge("queue_entries_per_second", queue=name),
            f"{name}: claimed": gauge("queue_claimed_batches", queue=name),
            f"{name}: is_paused": gauge("queue_paused", queue=name) == 1,
            f"{name}: outcomes": tuple(gauge("queue_outcomes", queue=name, outcome=one) for one in OUTCOMES),
        }
    facts["still"] = gauge("migration_still_seconds")
    facts["live"] = {
        one.labels["host"]: one.value for one in samples if one.name == "rowferry_live_workers" and one.value
    }
    return facts


def read_board_now(moment: Moment, migration: str) -> Facts:
    """Read the six numbers, which are of the migration whichever queue is chosen."""
    found = [moment.board("now", migration, queue=queue) for queue in ("", *moment.queues[migration][-1:])]
    ((row,), *others) = found
    six = ("state", "since", "done", "left", "speed", "time left", "ends at", "need an operator")
    for (other,) in others:
        assert {name: other[name] for name in six} == {name: row[name] for name in six}
    return {
        "state": row["state"],
        "done in tenths": row["done"],
        "left": row["left"],
        "rate": row["speed"],
        "seconds_left": row["time left"],
        "ends_at": None if row["ends at"] is None else row["ends at"] / 1000,
        "need": row["need an operator"],
        "all outcomes": tuple(row[outcome] or 0 for outcome in OUTCOMES),
        "all batches": tuple(row[status] or 0 for status in ("INIT", "DONE", "ERROR")),
    }


def read_board_migrations(moment: Moment, migration: str) -> Facts:
    rows = moment.board("migrations_table", migration)
    assert [row["migration"] for row in rows] == [row["migration"] for row in moment.board("migrations", migration)]
    (row,) = [row for row in rows if row["▶"] == "▶"]
    assert row["migration"] == migration
    return {
        "state": row["state"],
        "since": row["since"],
        "done in tenths": row["done"],
        "left": row["entries left"],
        "rate": row["entries/s"],
        "ends_at": row["ends at"],
        "need": row["need an operator"],
        "passes": row["passes"],
        "advice": (row["what holds it"], row["type this"]),
    }


def read_board_queues(moment: Moment, migration: str) -> Facts:
    rows = moment.board("queues_table", migration)
    names = [row["queue_name"] for row in moment.board("queues", migration)]
    facts: Facts = {"queues": [row["queue"] for row in rows]}
    assert facts["queues"] == names, "what the variable offers"
    for row in rows:
        name = row["queue"]
        facts |= {
            f"{name}: state": "running" if row["state"] == "holds_the_end" else row["state"],
            f"{name}: holds the end": row["state"] == "holds_the_end",
            f"{name}: done in tenths": row["done"],
            f"{name}: left": row["left"],
            f"{name}: rate": row["entries/s"],
            f"{name}: seconds_left": row["time left"],
            f"{name}: unsettled": row["failed"],
            f"{name}: failed_share": None if row["of finished"] is None else row["of finished"] / 100,
            f"{name}: claimed": row["claimed"],
        }
    return facts


def read_board_tables(moment: Moment, migration: str) -> Facts:
    facts: Facts = {}
    for name in moment.queues[migration]:
        for row in moment.board("tables", migration, queue=name):  # one: all items have one label
            facts |= {
                f"{name}: done in tenths": row["done"],
                f"{name}: entries": row["entries"],
                f"{name}: entries_left": row["waiting"],
                f"{name}: unsettled": row["failed"],
            }
    return facts


def read_board_errors(moment: Moment, migration: str) -> Facts:
    rows = moment.board("errors", migration)
    facts: Facts = {"in_error": sum(row["entries"] for row in rows)}
    for name in moment.queues[migration]:
        alone = moment.board("errors", migration, queue=name)
        facts[f"{name}: in_error"] = sum(row["entries"] for row in alone)
        assert [row for row in rows if row["queue"] == name] == alone
    return facts


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
