"""What waits is never added up over queues, which share entries; finished work is, unless one is chosen."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import Counter as CountedMetric
from prometheus_client import Gauge, Histogram

from drawing.queries import View
from rowferry.batch import Outcome
from rowferry_exporter.metrics import GAUGES, VIEWS
from support.entries.migration import Migration
from support.queue.queue_runs import verify
from support.screens.grafana import Target, list_targets, list_variables, read_board

ENTRIES, STEP = 30, 10
QUEUES = ("migrate", "verify")
NO_COUNTS = {"batch", "bytes", "time", "ends at", "duration", "claimed for", "attempt", "attempts", "pid", "done"} | {
    "left",
    "at this pace",
    "speed",
}
"""Columns of numbers that count neither entries nor batches, or that count the same ones at each time."""


@pytest.fixture
def verified(migration: Migration) -> Migration:
    migration.fill(ENTRIES).migrate()
    verify(migration)
    # Panels do not show the step of now, which is not over.
    migration.execute("update rowferry.batch_queue set finished_at = finished_at - interval '1 minute'")
    return migration


def ask(migration: Migration, query: str, *queues: str) -> list[dict[str, Any]]:
    """Return what a panel shows, of the last hour in steps of ten seconds."""
    now = datetime.now(UTC)
    chosen = {"migration": ["avatars"], "queue": list(queues), "host": ["any"]}
    view = View(now - timedelta(hours=1), now + timedelta(minutes=1), chosen, STEP)
    return migration.execute(view.expand_sql(query))


def sql_targets() -> list[Target]:
    return [target for target in list_targets() if target.is_sql]


def count_by_queue(rows: list[dict[str, Any]]) -> dict[str | None, Counter[str]]:
    """Return the sum of each column that counts, by the queue that the row is of; rates as what they add up to."""
    found: dict[str | None, Counter[str]] = {}
    for row in rows:
        sums = found.setdefault(row.get("queue", row.get("metric")), Counter())
        for name, value in row.items():
            if isinstance(value, (int, float, Decimal)) and name not in NO_COUNTS:
                has_time = "time" in row and (name.endswith("/s") or name in set(Outcome))
                sums[name] += round(float(value) * (STEP if has_time else 1))
    return found


def test_all_queues_are_chosen_unless_one_is_in_the_order_of_the_chain(verified: Migration) -> None:
    query = list_variables("migration")["queue"]
    assert [row["queue_name"] for row in ask(verified, query)] == ["migrate", "verify"]
    for board in ("migration", "workers"):
        (variable,) = [one for one in read_board(board)["templating"]["list"] if one["name"] == "queue"]
        assert (variable["multi"], variable["includeAll"], variable["sort"]) == (True, True, 0)
        assert variable["current"]["value"] == "$__all"


@pytest.mark.parametrize("queues", [("migrate",), ("verify",)])
def test_no_panel_shows_more_entries_of_a_queue_than_there_are(verified: Migration, queues: tuple[str, ...]) -> None:
    for target in sql_targets():
        for queue, sums in count_by_queue(ask(verified, target.query["rawSql"], *queues)).items():
            assert all(count <= ENTRIES for count in sums.values()), (str(target), queue, sums)


def test_work_is_added_up_over_queues_and_entries_are_not(verified: Migration) -> None:
    panels = {target.panel: target.query["rawSql"] for target in sql_targets()}
    for queues in (("migrate",), ("verify",), QUEUES):
        (now,) = ask(verified, panels["State"], *queues)
        assert sum(now[outcome] for outcome in Outcome) == ENTRIES * len(queues)
        assert (now["migrated"], now["kept"]) == tuple(ENTRIES * (queue in queues) for queue in QUEUES)
        assert (now["state"], now["done"], now["left"], now["need an operator"]) == ("done", 100, 0, 0)
        (pace,) = count_by_queue(ask(verified, panels["Entries a second"], *queues)).values()
        assert (pace["migrated"], pace["kept"]) == (now["migrated"], now["kept"])
    for panel, column in (
        ("Entries a second by queue", "entries/s"),
        ("Progress by table", "entries"),
        ("Slowest batches", "entries"),
    ):
        counts = count_by_queue(ask(verified, panels[panel], *QUEUES))
        assert {queue: sums[column] for queue, sums in counts.items()} == dict.fromkeys(QUEUES, ENTRIES), panel


def metrics_by_queue() -> set[str]:
    """Return the names of all metrics with the label `queue`, without suffixes."""
    from rowferry_worker.monitoring import metrics

    own = [metric for metric in vars(metrics).values() if isinstance(metric, (CountedMetric, Gauge, Histogram))]
    names = {next(iter(metric.describe())).name for metric in own if "queue" in metric._labelnames}  # pyright: ignore[reportPrivateUsage]
    return names | {f"rowferry_{gauge.name}" for gauge in GAUGES if "queue" in VIEWS[gauge.query]}


def test_no_panel_of_prometheus_adds_up_what_waits_in_queues() -> None:
    """Migration shows queues, one by one; none of Prometheus' panels does, or has a name for each in its legend."""
    names = {name for name in metrics_by_queue() if name.startswith("rowferry_queue_")}
    assert len(names) > 10
    for target in [target for target in list_targets() if target.is_promql]:
        assert not any(name in target.query["expr"] for name in names), str(target)
        assert "queue" not in target.query.get("legendFormat", ""), str(target)


def test_the_work_of_workers_is_that_of_the_chosen_migration_and_queues() -> None:
    """But for the hosts' own: requests, limits, connections, processes, versions."""
    names = {name for name in metrics_by_queue() if not name.startswith("rowferry_queue_")}
    assert len(names) >= 7
    for target in [target for target in list_targets() if target.is_promql]:
        for name, selector in re.findall(
            r"(rowferry_\w+?)(?:_total|_bucket|_sum|_count)?\{([^}]*)\}", target.query["expr"]
        ):
            if name in names:
                assert 'migration=~"$migration",queue=~"$queue"' in selector, (str(target), name)
