"""However a queue has come to stand, all screens say the same of it: boards, commands, report, exporter, alerts.

Queues are lived through by rowferry's own functions (tests/support/queue/histories.py), and each reader is held against
the two views that define what is so.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings

from rowferry.formatting import format_rate
from rowferry_cli.status.state import show_state
from support.queue.histories import MIGRATIONS, Plan, Step, World, histories
from support.screens.grafana import URGENT
from support.screens.readers import OUTCOMES, READERS, Facts, Moment, look, read_views

BY_DAY, BY_NIGHT = 12, 1000
"""Random queues. Each has some sixty queries of views that are planned anew: one to two seconds on a busy machine."""
OFTEN = settings(deadline=None, suppress_health_check=list(HealthCheck))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def world(any_database: str) -> Iterator[World]:
    world = World()
    world.operator.execute("create table public.avatars (id bigint primary key, path text)")
    yield world
    world.close()


@pytest.mark.versions
@pytest.mark.timeout(900)
@settings(OFTEN, max_examples=BY_DAY)
@given(histories)
def test_all_screens_say_the_same(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: tuple[Plan, Sequence[Step]]
) -> None:
    hold_readers(world, tmp_path, monkeypatch, history)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@settings(OFTEN, max_examples=BY_NIGHT)
@given(histories)
def test_all_screens_say_the_same_of_many_queues(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: tuple[Plan, Sequence[Step]]
) -> None:
    hold_readers(world, tmp_path, monkeypatch, history)


IN_ERROR = """
select q.queue_name, sum(q.entry_count - q.migrated - q.kept - q.changed - q.deleted)::bigint as entries
from rowferry.batch_queue as q inner join rowferry.migration as m on q.migration_id = m.id
where q.status = 'ERROR' and m.name = %(m)s group by q.queue_name
"""


def hold_readers(world: World, folder: Path, patch: pytest.MonkeyPatch, history: tuple[Plan, Sequence[Step]]) -> None:
    """Live through a history, and hold all readers against the views."""
    world.live_through(*history)
    touched = {arguments.get("migration") for _, arguments in history[1]}
    with look(world.readers, folder, patch) as moment:
        urgent = {row["migration"]: row for row in moment.rows(URGENT)}
        truths = {migration: read_views(moment, migration) for migration in MIGRATIONS if migration in touched}
        for migration, truth in truths.items():
            event(f"{truth['state']}: {truth['cause'] or 'nothing holds it'}")
            hold_alert(urgent.get(migration), truth)
            for reader, read in READERS.items():
                hold(reader, read(moment, migration), migration, truth, moment)


def hold(reader: str, told: Facts, migration: str, truth: Facts, moment: Moment) -> None:
    """Hold what a reader says against what is so, and against what others count."""
    expected = truth | derive(truth, moment, migration)
    for name, value in told.items():
        if name in CHECKS:
            CHECKS[name](reader, value, truth)
            continue
        fact, is_so = name.rpartition(": ")[2], expected[name]
        if fact in {"since", "ends_at"} and isinstance(value, float):
            is_so = None if is_so is None else is_so.timestamp()
        assert is_close(value, is_so), f"{reader} says of {migration}, {name}: {value!r}, and it is {is_so!r}"


def is_close(told: Any, is_so: Any) -> bool:
    """Return whether two facts are the same: numbers to nine digits, as a metric or a timedelta has them."""
    if isinstance(told, float) and isinstance(is_so, float | int) and not isinstance(is_so, bool):
        return math.isclose(told, is_so, rel_tol=1e-6, abs_tol=2e-6)
    return told == is_so


def derive(truth: Facts, moment: Moment, migration: str) -> Facts:
    """Return facts as some readers word them."""
    facts: Facts = {
        "done in tenths": in_tenths(truth["done"]),
        "word": show_state(truth["state"]),
        "all outcomes": tuple(
            sum(truth[f"{name}: outcomes"][place] for name in truth["queues"]) for place in range(len(OUTCOMES))
        ),
        "all batches": tuple(sum(truth[f"{name}: batches"][place] for name in truth["queues"]) for place in range(3)),
    }
    in_error = {row["queue_name"]: row["entries"] for row in moment.rows(IN_ERROR, m=migration)}
    facts["in_error"] = sum(in_error.values())
    for name in truth["queues"]:
        facts[f"{name}: in_error"] = in_error.get(name, 0)
        assert truth[f"{name}: need"] == max(facts[f"{name}: in_error"], truth[f"{name}: batches"][2])
        share = truth[f"{name}: done"]
        is_slowest = truth[f"{name}: is_slowest"] and truth[f"{name}: state"] == "running"
        facts |= {
            f"{name}: done in tenths": in_tenths(share),
            f"{name}: percent": None if share is None else f"{math.floor(100 * share + 1e-9)}%",
            f"{name}: shown rate": format_rate(truth[f"{name}: rate"]),
            f"{name}: holds the end": is_slowest and len(truth["queues"]) > 1,
        }
    (counted,) = moment.rows(
        "select count(*) as attempts from rowferry.batch_attempt as a inner join rowferry.batch_queue as q "
        "on a.batch_id = q.id inner join rowferry.migration as m on q.migration_id = m.id where m.name = %(m)s",
        m=migration,
    )
    return facts | counted


def in_tenths(share: float | None) -> float | None:
    """Return a share in percent, rounded down to a tenth: 100 only where all is done."""
    return None if share is None else math.floor(1000 * share + 1e-9) / 10


def check_sums(reader: str, told: tuple[str | None, int, int, int, str | None], truth: Facts) -> None:
    """The line of what is looked at: batches done, all, in ERROR, and the rate where there is one queue."""
    name, done, batches, in_error, rate = told
    names = truth["queues"]
    assert (name is not None) == (len(names) > 1)
    if not names:
        assert (done, batches, in_error) == (0, 0, 0)
        return
    of = name or names[0]
    assert (done, batches, in_error) == (
        truth[f"{of}: batches"][1],
        sum(truth[f"{of}: batches"]),
        truth[f"{of}: batches"][2],
    ), reader
    assert rate == (None if name else format_rate(truth[f"{of}: rate"])), reader


def check_words(reader: str, told: str, truth: Facts) -> None:
    assert truth["what_to_do"] in told, reader


def check_title(_reader: str, told: str, truth: Facts) -> None:
    has_batches = any(sum(truth[f"{name}: batches"]) for name in truth["queues"])
    word = show_state(truth["state"]).capitalize() if has_batches else "Not begun"
    assert told.partition(": ")[2] == f"{word} (rowferry report)"


def check_tiles(_reader: str, told: dict[str, str], truth: Facts) -> None:
    if not told:
        return
    done = in_tenths(truth["done"])
    words = {0: "0 %" if not truth["done"] else "< 0.1 %", 100: "100 %", None: "–"}
    assert told["Done"] == words.get(done, f"{done} %")
    assert told["Need an operator"] == f"{truth['need']:,}"


def check_advice(reader: str, told: tuple[str, str | None], truth: Facts) -> None:
    """What holds it, without what to type, which has a column of its own."""
    holds, command = told
    assert truth["what_to_do"].startswith(holds), reader
    assert (command or "") in truth["what_to_do"], reader
    assert bool(holds) == bool(truth["what_to_do"]), reader


CHECKS = {"advice": check_advice, "sums": check_sums, "said": check_words, "title": check_title, "tiles": check_tiles}


def hold_alert(fired: dict[str, Any] | None, truth: Facts) -> None:
    """Hold Grafana's alert of a migration, None where it is silent, against what the screens show."""
    state, cause = truth["state"], truth["cause"]
    is_urgent = state in {"stalled", "no_workers", "needs_operator"} or cause in {"worker", "server_away"}
    assert (fired is not None) == is_urgent, (fired, truth)
    if fired is not None:
        assert (fired["severity"] == "warning") == (state == "needs_operator")
