"""After migrate and verify of N entries each panel shows N, not 2 N: no panel adds queues up."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import Counter as CountedMetric
from prometheus_client import Gauge, Histogram

from rowferry.batch import Outcome
from rowferry_exporter.metrics import describe
from rowferry_exporter.reader import ViewRows
from support.entries.migration import Migration
from support.queue.queue_runs import migrate, verify
from support.screens.grafana import Target, View, list_targets, list_variables, read_board

ENTRIES, STEP = 30, 10
QUEUES = ("migrate", "verify")
NO_COUNTS = {"batch", "bytes", "time", "ends at", "duration", "claimed for", "attempt", "attempts", "pid", "done"} | {
    "left",
    "at this pace",
    "speed",
}
"""Columns of numbers that count neither entries nor batches, or that count the same ones at each time."""
OF_HOSTS = {"Workers by host"}
"""Panels that show no migration."""


@pytest.fixture
def verified(migration: Migration) -> Migration:
    migration.fill(ENTRIES)
    migrate(migration)
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


def test_the_first_queue_of_the_chain_is_chosen_unless_others_are(verified: Migration) -> None:
    query = list_variables("migration")["queue"]
    assert [row["queue_name"] for row in ask(verified, query)] == ["migrate", "verify"]
    variables = {board: read_variable(board) for board in ("migration", "workers")}
    for variable in variables.values():
        assert (variable["multi"], variable["includeAll"], variable["sort"]) == (True, False, 0)
        assert "current" not in variable  # so Grafana takes the first


def read_variable(board: str) -> dict[str, Any]:
    (variable,) = [one for one in read_board(board)["templating"]["list"] if one["name"] == "queue"]
    return variable


@pytest.mark.parametrize("queues", [("migrate",), ("verify",), QUEUES])
def test_no_panel_shows_more_entries_of_a_queue_than_there_are(verified: Migration, queues: tuple[str, ...]) -> None:
    for target in sql_targets():
        if target.panel in OF_HOSTS:
            continue
        for queue, sums in count_by_queue(ask(verified, target.query["rawSql"], *queues)).items():
            assert all(count <= ENTRIES for count in sums.values()), (str(target), queue, sums)


def test_what_counts_entries_shows_each_once_by_queue(verified: Migration) -> None:
    panels = {target.panel: target.query["rawSql"] for target in sql_targets()}
    now = {row["queue"]: row for row in ask(verified, panels["State"], *QUEUES)}
    outcomes = {queue: sum(row[outcome] for outcome in Outcome) for queue, row in now.items()}
    assert outcomes == dict.fromkeys(QUEUES, ENTRIES)
    assert (now["migrate"]["migrated"], now["verify"]["kept"]) == (ENTRIES, ENTRIES)
    assert {(row["state"], row["done"], row["need an operator"]) for row in now.values()} == {("done", 100, 0)}
    paces = count_by_queue(ask(verified, panels["Entries a second"], *QUEUES))
    assert (paces["migrate"]["migrated"], paces["verify"]["kept"]) == (ENTRIES, ENTRIES)
    for panel, column in (
        ("Entries a second by queue", "entries/s"),
        ("Progress by hour", "entries"),
        ("Progress by table", "entries"),
        ("Slowest batches", "entries"),
    ):
        counts = count_by_queue(ask(verified, panels[panel], *QUEUES))
        assert {queue: sums[column] for queue, sums in counts.items()} == dict.fromkeys(QUEUES, ENTRIES), panel


def test_the_chain_shows_each_queue_and_what_is_claimed_of_it(verified: Migration) -> None:
    (query,) = [target.query["rawSql"] for target in sql_targets() if target.panel == "Chain"]
    verified.execute("update rowferry.queue set next = '{verify}', max_in_hand = 3 where name = 'migrate'")
    verified.execute(
        "insert into rowferry.queue (migration_id, name, max_in_hand) select id, 'verify', 4 from rowferry.migration "
        "on conflict on constraint queue_name_key do update set max_in_hand = 4"
    )
    verified.execute("update rowferry.batch_queue set status = 'INIT', kept = 0 where queue_name = 'verify'")
    first, second = ask(verified, query, "migrate")
    assert (first["queue"], first["state"], first["entries waiting"]) == ("migrate", "done", 0)
    assert (second["queue"], second["state"], second["entries waiting"]) == ("verify", "no_workers", ENTRIES)
    assert (second["batches waiting"], second["claimed"], second["at most"]) == (1, 0, 4)
    assert second["oldest due"] >= 0


def metrics_by_queue() -> set[str]:
    """Return the names of all metrics with the label `queue`, without suffixes."""
    from rowferry_worker.monitoring import metrics

    own = [metric for metric in vars(metrics).values() if isinstance(metric, (CountedMetric, Gauge, Histogram))]
    names = {next(iter(metric.describe())).name for metric in own if "queue" in metric._labelnames}  # pyright: ignore[reportPrivateUsage]
    row: dict[str, Any] = dict.fromkeys(("migration", "queue_name"), "x")
    batches = ("batches_init", "batches_done", "batches_error", "claimed", "max_in_hand", "due_seconds")
    others = ("position", "priority", "paused", "entries", "waiting", "in_hand", "rate", "ends_at", "total")
    row |= dict.fromkeys((*batches, *others, *map(str, Outcome)), 1)
    told = describe(ViewRows([row], [], [], [], [], 0.0, 0.0))
    return names | {family.name for family in told if any("queue" in sample.labels for sample in family.samples)}


def test_no_panel_of_prometheus_adds_queues_up() -> None:
    names = metrics_by_queue()
    assert len(names) > 15
    pattern = re.compile("|".join(sorted(names, key=len, reverse=True)))
    asked = [target for target in list_targets() if target.is_promql and pattern.search(target.query["expr"])]
    assert len(asked) > 10
    for target in asked:
        sums = re.findall(r"\bsum(?: by \(([^)]*)\))? \(rate\(|\bsum by \(([^)]*)\)", target.query["expr"])
        groups = ["".join(found) for found in sums] or re.findall(r"\bmax by \(([^)]*)\)", target.query["expr"])
        assert groups, str(target)
        of_queues = [group for group in groups if "queue" in group]
        if target.panel == "Hosts":  # one row a host, however many queues: the greatest of them
            assert target.query["expr"].removeprefix("sort(").startswith("max by (host) ("), str(target)
            assert of_queues == groups, str(target)
            continue
        assert of_queues == groups, str(target)
        assert "queue" in target.query.get("legendFormat", ""), str(target)
