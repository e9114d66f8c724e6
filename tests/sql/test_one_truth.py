"""However a queue stands, all screens say the same of it: boards, `watch`, `status`, `queues`, the exporter."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from rowferry.db.statements import statement
from rowferry.reports.chain import read_chain
from rowferry.reports.state import read_state
from rowferry_cli.watch.layout import show_share
from rowferry_cli.watch.reading import read_snapshot
from support.queue.lines import Lines
from support.queue.rows import add_worker
from support.screens.grafana import View, list_targets

ADD = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, run_after, started_at, finished_at,
    migrated, kept, missing, conflict, failed
)
select
    m.id, %(queue)s, '{"entries": "t.key"}', %(entries)s, replace(%(status)s, 'PARKED', 'ERROR'),
    now() + %(due)s::interval, now() - interval '9 s',
    case when %(status)s in ('DONE', 'ERROR') then now() end,
    %(migrated)s, %(kept)s, %(missing)s, %(conflict)s, %(failed)s
from rowferry.migration as m where m.name = 'm'
returning id
"""
ATTEMPT = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at)
values (%s, 0, 1, %s, now() - interval '5 s') returning id
"""
FAILURE = """
insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt)
select %(id)s, format('%%s-%%s', o.outcome, n), 'image/1.png', o.outcome, 'NoSuchKey', 'NoSuchKey: gone', 1
from (
    values ('missing', %(missing)s::integer), ('conflict', %(conflict)s), ('failed', %(failed)s)
) as o (outcome, entries), generate_series(1, o.entries) as n
"""
QUEUES = ("copy", "tag", "check")
OUTCOMES = ("migrated", "kept", "missing", "conflict", "failed")
BOARD = {target.panel: target for target in list_targets() if target.is_sql}


@dataclass(frozen=True)
class Batch:
    queue: str
    status: str
    due: str
    outcomes: dict[str, int]
    """In INIT, only what earlier attempts have settled."""
    waiting: int
    in_hand: int
    by: str
    """The worker that has it, if one has: a live one or a dead one."""


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    status = draw(st.sampled_from(("INIT", "DONE", "ERROR", "PARKED")))
    counts = {name: draw(st.integers(0, 4)) for name in OUTCOMES}
    if status != "ERROR":
        counts |= {"missing": 0, "conflict": 0, "failed": 0}
    waiting = draw(st.integers(0, 9)) if status in {"INIT", "PARKED"} else 0
    return Batch(
        draw(st.sampled_from(QUEUES)),
        status,
        draw(st.sampled_from(("-1 min", "-1 min", "1 h"))),
        counts,
        waiting,
        draw(st.integers(0, waiting)),
        draw(st.sampled_from(("", "live", "dead"))) if status == "INIT" else "",
    )


@dataclass(frozen=True)
class Stand:
    batches: list[Batch]
    served: tuple[str, ...]
    paused: tuple[str, ...]
    is_paused: bool
    is_chain: bool


stands = st.builds(
    Stand,
    st.lists(batches(), max_size=7),
    st.sampled_from(((), ("copy",), QUEUES)),
    st.lists(st.sampled_from(QUEUES), unique=True, max_size=3).map(tuple),
    st.sampled_from((False, False, True)),
    st.booleans(),
)


@pytest.fixture
def lines(any_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setenv("DATABASE_URL", any_database)
    with closing(Lines(any_database)) as lines:
        yield lines


def build(lines: Lines, stand: Stand) -> None:
    """Bring the queue to where it shall stand."""
    for table in (
        "entry_failure",
        "batch_attempt",
        "worker",
        "event",
        "batch_queue",
        "batch_tally",
        "queue",
        "migration",
    ):
        lines.session.execute(f"delete from rowferry.{table}".encode())
    chain = {"copy": {"next": ["tag"]}, "tag": {"next": ["check"]}, "check": {}}
    lines.session.execute(
        "select rowferry.register_migration('m', '{}', %s)",
        (Jsonb(chain if stand.is_chain else {name: {} for name in QUEUES}),),
    )
    if stand.served:
        add_worker(lines, *stand.served, name="live")
    add_worker(lines, *QUEUES, name="dead", silent="60 s")
    for batch in stand.batches:
        chosen = {"queue": batch.queue, "status": batch.status, "due": batch.due, **batch.outcomes}
        ((row),) = lines.session.execute(ADD, chosen | {"entries": sum(batch.outcomes.values()) + batch.waiting})
        lines.session.execute(FAILURE, {"id": row["id"], **batch.outcomes})
        if batch.by == "dead" or (batch.by and stand.served):
            ((attempt),) = lines.session.execute(ATTEMPT, (row["id"], batch.by))
            told = "update rowferry.worker set in_hand = in_hand || %s, reported_at = now() where id = %s"
            lines.session.execute(told, (Jsonb({str(attempt["id"]): batch.in_hand}), batch.by))
    for queue in stand.paused:
        lines.steer(("m", queue), "paused_at = now()")
    if stand.is_paused:
        lines.session.execute("update rowferry.migration set paused_at = now()")


def ask(lines: Lines, panel: str, queue: str = "") -> list[dict[str, Any]]:
    """Return what a panel of the board shows, of one queue or of all."""
    now = datetime.now(UTC)
    view = View(now - timedelta(hours=1), now, {"migration": ["m"], "queue": [queue] if queue else list(QUEUES)})
    return lines.session.execute(view.expand_sql(BOARD[panel].query["rawSql"]).encode()).fetchall()


def per_mille(share: float | None) -> float | None:
    return None if share is None else floor(1000 * share) / 10


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stands)
def test_all_screens_say_the_same(lines: Lines, stand: Stand) -> None:
    with lines.session.transaction():
        build(lines, stand)
    compare(lines)


def compare(lines: Lines) -> None:
    """Hold all readers against rowferry.migration_state and rowferry.queue_status."""
    session: Any = lines.session
    (whole,) = session.execute("select * from rowferry.migration_state where migration = 'm'").fetchall()
    queues = session.execute("select * from rowferry.queue_status where migration = 'm'").fetchall()
    snapshot = read_snapshot(session, "m")
    chain = read_chain(session, "m")
    state = read_state(session, "m")
    (told,) = session.execute(statement("exporter_migrations"), {"limit": 9}).fetchall()
    (row,) = ask(lines, "All migrations")
    assert state is not None
    shares = [queue["done_share"] for queue in queues if queue["done_share"] is not None]

    assert {state.state, snapshot.state, told["state"], row["state"]} == {whole["state"]}
    assert whole["done_share"] == min(shares, default=None)
    assert row["done"] == per_mille(whole["done_share"])
    assert row["need an operator"] == told["need_somebody"] == whole["need_somebody"]
    assert (whole["state"] == "done") == snapshot.is_done == told["is_done"]
    if whole["state"] == "done":
        assert whole["done_share"] in {1, None}
    assert (whole["need_somebody"] > 0) == any(queue["batches_error"] for queue in queues)
    compare_numbers(lines)
    assert (whole["need_somebody"] > 0) == bool(ask(lines, "Errors by reason")), "of all queues"
    for queue in queues:
        assert (queue["need_somebody"] > 0) == bool(ask(lines, "Errors by reason", queue["queue_name"]))
    compare_queues(lines, {queue["queue_name"]: queue for queue in queues}, snapshot, chain)


def compare_numbers(lines: Lines) -> None:
    """Hold the six numbers of a board against the row of the same migration, whichever queue its curves are of."""
    with lines.session.transaction():  # at one moment: rates change with the clock
        (whole,) = lines.session.execute("select * from rowferry.migration_state where migration = 'm'")
        (row,) = ask(lines, "All migrations")
        answers = [ask(lines, "State", queue) for queue in ("", *QUEUES)]
    assert all(answers)
    for now in [now for answer in answers for now in answer]:
        assert now["state"] == whole["state"]
        assert now["done"] == row["done"]
        assert now["left"] == row["entries left"] == whole["waiting"]
        assert now["time left"] == whole["seconds_left"]
        assert now["speed"] == row["entries/s"] == whole["rate_1m"]
        assert now["need an operator"] == row["need an operator"]
    assert row["ends at"] == whole["ends_at"]
    assert bool(row["what holds it"]) == (whole["state"] not in {"running", "done"})
    assert row["▶"] == "▶"


def compare_queues(lines: Lines, queues: dict[str, Any], snapshot: Any, chain: Any) -> None:
    exported = {one["queue_name"]: one for one in lines.session.execute(statement("exporter_queues"), {"limit": 9})}
    drawn = {one["queue"]: one for one in ask(lines, "Queues of the migration")}
    watched = {one.name: one for one in snapshot.queues}
    listed = {one["queue"]: one for one in lines.session.execute(statement("list_queues"))}
    for name, queue in queues.items():
        counts = watched[name].total
        assert counts == {one.queue: one for one in chain}[name].counts
        assert counts.balances
        assert (counts.entries, counts.waiting, counts.in_hand) == (
            queue["entries"],
            queue["waiting"],
            queue["in_hand"],
        )
        assert counts.unsettled == queue["unsettled"]
        is_slowest = queue["is_slowest"] and queue["state"] == "running"
        assert drawn[name]["state"] == ("holds_the_end" if is_slowest and len(queues) > 1 else queue["state"])
        assert drawn[name]["left"] == queue["pending"] - queue["pending_in_hand"]
        assert queue["entries_left"] == counts.waiting - counts.in_hand
        assert queue["batches_left"] == listed[name]["waiting_batches"]
        assert (exported[name]["waiting"], exported[name]["in_hand"]) == (counts.waiting, counts.in_hand)
        if counts.entries:
            tables = ask(lines, "Progress by table", name)
            assert queue["done_share"] == counts.settled_so_far / counts.entries
            assert show_share(counts) == f"{floor(100 * queue['done_share'])}%"
            assert [table["done"] for table in tables] == [per_mille(queue["done_share"])]
            assert sum(table["failed"] for table in tables) == counts.unsettled
