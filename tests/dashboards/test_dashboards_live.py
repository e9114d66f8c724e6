"""Every panel that asks Prometheus during a real migration: real workers, a real PostgreSQL, a real Prometheus.

`make test-dashboards` runs this file, and `make test-nightly` where `prometheus` and `promtool` are on PATH.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path

import pytest

from drawing.queries import View
from rowferry_lab.servers.s3_servers import S3Server
from support.entries.migration import Migration
from support.postgres.servers import POSTGRES, DatabaseServers
from support.processes.clock import LoadClock
from support.processes.processes import wait_for
from support.processes.prometheus_server import CLUSTER, MISSING, PROGRAMS, WHY_SKIPPED, Prometheus, running_prometheus
from support.processes.scrape import find_served_port, served_port
from support.s3.buckets import fresh_buckets
from support.screens.grafana import FOLDER, Target, list_targets, list_variables

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=WHY_SKIPPED),
    pytest.mark.xdist_group("live"),  # One migration for all of them.
    pytest.mark.timeout(1200),
    pytest.mark.soak,
]

JOBS: Sequence[str] = ("rowferry-worker", "rowferry-exporter")
WITHOUT_OBJECT = 5
BATCH_SIZE, WAITING_BATCHES = 10, 4
"""As long as a panel has shown nothing, the workers always find so many batches."""
LONGEST_SECONDS = 60
"""How often, and for how long, those panels are asked that have shown nothing yet."""
ONLY_AT_TIMES = ("rowferry_request_rate_limit", 'result!~"ok')
"""What has no value until a server has throttled, or while no request fails."""


@dataclass
class Run:
    """A migration that has been watched from its beginning to its end."""

    migration: Migration
    prometheus: Prometheus
    start: datetime
    end: datetime | None = None
    """None while it goes on."""
    silent: Sequence[Target] = ()
    """Panels that returned nothing at any time."""

    def view(self) -> View:
        """Return what a reader would have chosen above the panels; a scrape that came too late counts as none."""
        end = self.end or datetime.now(UTC) + timedelta(seconds=1)
        builds = [sample["metric"] for sample in self.prometheus.query("last_over_time(rowferry_build_info[30m])")]
        hosts, instances = ([build[name] for build in builds] for name in ("host", "instance"))
        chosen = {"cluster": [CLUSTER], "job": list(JOBS), "migration": ["avatars"], "queue": ["migrate"]}
        return View(self.start, end, {**chosen, "host": hosts, "instance": instances}, 2)


@pytest.fixture(scope="module")
def run(database_servers: DatabaseServers, moto: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Watch two worker processes and an exporter while they migrate; everything still runs when the tests ask."""
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as until:
        patch = until.enter_context(pytest.MonkeyPatch.context())
        dsn = until.enter_context(database_servers.fresh_database(POSTGRES))
        buckets = until.enter_context(fresh_buckets(moto))
        migration = until.enter_context(closing(Migration(dsn, buckets, buckets, folder)))
        for name, value in migration.environment.items():
            patch.setenv(name, value)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        # The first batch holds rows without an object.
        for number in range(WITHOUT_OBJECT):
            migration.add_row(number - WITHOUT_OBJECT, f"image/nothing/{number}.png")
        migration.plan["production"]["max_requests_per_second"] = 30
        add_work(migration)
        start = datetime.now(UTC)
        arguments = ("--processes", "2", "--max-batches=1", "--parallel", "1", "--metrics-port", "0")
        (worker,) = until.enter_context(migration.workers(1, *arguments))
        ports = [served_port(worker)], [until.enter_context(exporting())]
        targets = dict(zip(JOBS, ports, strict=True))
        run = Run(migration, until.enter_context(running_prometheus(folder, targets)), start)
        run.silent = watch_panels(run)
        migration.wait_until_done()
        total = len(migration.bodies) + WITHOUT_OBJECT
        wait_for(lambda: run.prometheus.value("sum(rowferry_entries_total)") == total)
        wait_for(lambda: run.prometheus.value("sum(rowferry_queue_entries_waiting)") == 0)
        run.end = datetime.now(UTC)
        yield run


def add_work(migration: Migration) -> None:
    """Enqueue new entries unless there are enough: the migration lasts as long as it is watched."""
    if len(migration.execute("select from rowferry.batch_queue where status = 'INIT'")) < WAITING_BATCHES:
        migration.fill(BATCH_SIZE * WAITING_BATCHES, start=len(migration.bodies) + 1).enqueue(batch_size=BATCH_SIZE)


@contextmanager
def exporting() -> Iterator[int]:
    """Yield the port of a running exporter."""
    with subprocess.Popen(
        [sys.executable, "-m", "rowferry_cli", "exporter", "--port", "0", "--log-format", "json"],
        stderr=subprocess.PIPE,
        text=True,
    ) as exporter:
        try:
            assert exporter.stderr is not None
            yield find_served_port(exporter.stderr.readline())
        finally:
            exporter.terminate()


def watch_panels(run: Run) -> list[Target]:
    """Ask each panel of Prometheus until it has returned something while there was work; return the silent ones."""
    wait_for(lambda: len(run.migration.execute("select from rowferry.live_workers")) == 2)
    silent, clock = [target for target in list_targets() if asks_always(target)], LoadClock()
    while silent and clock.look() < LONGEST_SECONDS:
        add_work(run.migration)
        time.sleep(0.3)
        silent = [target for target in silent if not numbers_of(run, target)]
    return silent


def test_every_panel_of_prometheus_returns_data_during_the_migration(run: Run) -> None:
    assert len([target for target in list_targets() if asks_always(target)]) > 30
    assert [str(target) for target in run.silent] == []


def asks_always(target: Target) -> bool:
    """Return whether a panel should show something: others repeat one, or show what there is only at times."""
    return target.is_promql and not any(name in target.query["expr"] for name in ONLY_AT_TIMES)


def numbers_of(run: Run, target: Target) -> list[float]:
    """Return every number that a panel showed during the migration; what divides nothing by nothing is none."""
    view = run.view()
    curves = run.prometheus.query_range(view.expand_promql(target.query["expr"]), view.start, view.end)
    values = [float(value) for curve in curves for _, value in curve["values"]]
    return [value for value in values if isfinite(value)]


def test_every_variable_of_prometheus_has_values(run: Run) -> None:
    variables = list_variables("workers")
    in_order = variables.pop("queue").removeprefix("query_result(").removesuffix(")")
    assert [sample["metric"] for sample in run.prometheus.query(run.view().expand_promql(in_order))] == [
        {"queue": "migrate"}
    ]
    for query in variables.values():
        inner = run.view().expand_promql(query).removeprefix("label_values(").removesuffix(")")
        match, _, label = inner.rpartition(", ")
        assert run.prometheus.ask(f"label/{label}/values", **{"match[]": match}), query


def test_prometheus_and_postgresql_agree(run: Run) -> None:
    counts = run.migration.counts()
    assert counts == {"migrated": len(run.migration.bodies), "missing": WITHOUT_OBJECT}
    for metric in ("rowferry_entries_total", "rowferry_queue_outcomes"):
        found = run.prometheus.query(f"sum by (outcome) (last_over_time({metric}[30m])) > 0")
        assert {sample["metric"]["outcome"]: int(sample["value"][1]) for sample in found} == counts
    wait_for(lambda: run.prometheus.value("sum(rowferry_live_workers)") == 2)
    run.migration.audit(legacy_left=range(-WITHOUT_OBJECT, 0))


def test_the_rules_are_evaluated_without_an_error(run: Run) -> None:
    groups = run.prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    wait_for(lambda: run.prometheus.value("migration_queue:rowferry_error_share:ratio") is not None)
    assert {rule["health"] for rule in rules} == {"ok"}
    assert {rule["type"] for rule in rules} == {"alerting", "recording"}


def test_the_configuration_is_valid() -> None:
    command = [str(PROGRAMS["promtool"]), "check", "config", "prometheus.yml"]
    done = subprocess.run(command, cwd=Path(FOLDER) / "prometheus", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
