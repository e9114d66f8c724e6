"""Plots the main panels of both dashboards from their own queries' answers during a real migration, with matplotlib.

These are no screenshots of Grafana: the numbers are those that its panels would show, the drawing is another. Run it by
`make pictures`; it needs prometheus on PATH and starts all else itself.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import matplotlib as mpl  # pyright: ignore[reportMissingImports]
import psycopg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))
mpl.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402  # pyright: ignore[reportMissingImports]

from grafana import View, list_panels  # noqa: E402 - found by the path above
from prometheus_server import Prometheus, running_prometheus  # noqa: E402
from rowferry_lab.simulated.environment import Environment, start_environment  # noqa: E402
from scrape import find_served_port  # noqa: E402

PICTURES, LOST = 6000, 12
SHOWN = {
    "migration": ("Entries a second", "Outcomes", "Batches by status", "Attempts"),
    "workers": (
        "Entries a second by host",
        "Work on an object",
        "S3 requests a second by result",
        "Objects in flight and their limit",
        "Row updates of a batch",
        "Claimed batches",
        "Attempts a second by verdict",
        "CPU by instance",
        "Memory by instance",
    ),
}
UNITS = {"short": ("", 1.0), "percentunit": ("cores", 1.0), "bytes": ("MB", 1e6), "reqps": ("requests/s", 1.0)}
"""What a unit of Grafana is called here, and by what its values are divided."""
RED, GREEN, BLUE = "#e02f44", "#56a64b", "#3274d9"
COLOURS = {"migrated": GREEN, "DONE": GREEN, "kept": BLUE, "INIT": BLUE, "missing": "#ff780a"}
COLOURS |= {"migrated or kept/s": GREEN, "failed": RED, "failed/s": RED, "ERROR": RED}


@dataclass
class Source:
    """Both data sources, and the time that was watched."""

    dsn: str
    prometheus: Prometheus
    start: datetime

    def view(self) -> View:
        """Return what somebody would look at just now."""
        infos = [sample["metric"] for sample in self.prometheus.query("rowferry_build_info")]
        values = {"host": [i["host"] for i in infos], "instance": [i["instance"] for i in infos]}
        return View(self.start, datetime.now(UTC), {"migration": ["avatars"], "queue": ["migrate"], **values}, 2)

    def ask(self, query: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
        """Return the points of each curve of a query; of a query without times, one point a column."""
        if "rawSql" in query:
            return self._ask_sql(self.view().expand_sql(query["rawSql"]))
        found: dict[str, list[tuple[float, float]]] = {}
        expression = self.view().expand_promql(query["expr"])
        for curve in self.prometheus.query_range(expression, self.start, datetime.now(UTC)):
            name = query["legendFormat"]
            for label, value in curve["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            found[name] = [(float(t), float(v)) for t, v in curve["values"] if isfinite(float(v))]
        return found

    def _ask_sql(self, query: str) -> dict[str, list[tuple[float, float]]]:
        with psycopg.connect(self.dsn) as connection:
            cursor = connection.execute(query.encode())
            names, rows = [column.name for column in cursor.description or ()], cursor.fetchall()
        times = [float(row[names.index("time")]) if "time" in names else 0.0 for row in rows]
        words = {"time", "metric", "queue"}  # there is one queue
        columns = {name: number for number, name in enumerate(names) if name not in words}
        return {
            name: [(t, float(row[at] or 0)) for t, row in zip(times, rows, strict=True)] for name, at in columns.items()
        }


@contextmanager
def daemon(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Yield a running rowferry command and the port that it serves its metrics on."""
    command = [sys.executable, "-m", "rowferry_cli", *arguments, "--log-format", "json"]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log, text=True) as process:
        try:
            yield process, wait_for_port(log)
        finally:
            process.terminate()


def wait_for_port(log: Any) -> int:
    """Return the port that a log speaks of, once it does."""
    while True:
        log.seek(0)
        for line in log:
            if '"serving metrics"' in line:
                return find_served_port(line)
        time.sleep(0.1)


def rowferry(*arguments: str) -> None:
    """Run a command to its end."""
    subprocess.run([sys.executable, "-m", "rowferry_cli", *arguments], check=True)


def migrate(environment: Environment, folder: Path) -> None:
    """Migrate with two processes, one of which is killed, and plot what the panels say in the end."""
    rowferry("prepare", str(PICTURES), "--yes", "--clean-production")
    rowferry("init")
    lose_objects(environment)
    start = datetime.now(UTC)
    dsn = os.environ["DATABASE_URL"]
    worker = ("worker", "--processes", "2", "--parallel", "4", "--metrics-port", "0")
    with (
        daemon("exporter", "--port", "0") as (_, exporter_port),
        daemon(*worker) as (_, worker_port),
        running_prometheus(folder, {"rowferry-worker": worker_port, "rowferry-exporter": exporter_port}) as prometheus,
    ):
        rowferry("enqueue", "--yes", "--batch-size", "25")
        wait_for_share(dsn, 0.4)
        with psycopg.connect(dsn) as connection:
            (pid,) = connection.execute("select pid from rowferry.live_workers limit 1").fetchone() or (0,)
        os.kill(pid, signal.SIGKILL)
        wait_for_share(dsn, 1.0)
        time.sleep(3)  # One more scrape, so that the curves come down.
        source = Source(dsn, prometheus, start)
        for board in ("migration", "workers"):
            plot(board, source)


def lose_objects(environment: Environment) -> None:
    """Delete some legacy objects that rows point at."""
    s3 = environment.open_s3()
    for item in s3.list_objects_v2(Bucket="sketch-legacy-s3", Prefix="image/", MaxKeys=LOST)["Contents"]:
        s3.delete_object(Bucket="sketch-legacy-s3", Key=item["Key"])


def wait_for_share(dsn: str, share: float) -> None:
    """Return once this part of the batches is finished."""
    query = (
        "select count(*) filter (where status <> 'INIT') >= %s * count(*) and count(*) > 0 from rowferry.batch_queue"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not (connection.execute(query, (share,)).fetchone() or (False,))[0]:
            time.sleep(0.2)


def plot(board: str, source: Source) -> None:
    """Draw the main panels of a dashboard."""
    panels = [panel for panel in list_panels(board) if panel["title"] in SHOWN[board]]
    wide = 2 if len(panels) < 5 else 3
    rows = -(-len(panels) // wide)
    figure, axes = plt.subplots(rows, wide, figsize=(4.2 * wide, 2.5 * rows), squeeze=False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        answers = {}
        for query in panel["targets"]:
            answers |= source.ask(query)
        draw(axis, panel, answers, source.start.timestamp())
    figure.tight_layout()
    figure.savefig(HERE / f"{board}_panels.png", dpi=72)


def draw(axis: Any, panel: dict[str, Any], answers: dict[str, list[tuple[float, float]]], start: float) -> None:
    """Draw one panel; the curves over the seconds since `start`."""
    axis.set_title(panel["title"], fontsize=9, loc="left")
    axis.tick_params(labelsize=7)
    if panel["type"] == "timeseries":
        name_of_unit = panel["fieldConfig"]["defaults"].get("unit", "short")
        unit, divisor = UNITS.get(name_of_unit, (name_of_unit, 1.0))
        for name, points in answers.items():
            seconds, values = [t - start for t, _ in points], [value / divisor for _, value in points]
            if any(values) or len(answers) == 1:
                axis.plot(seconds, values, linewidth=1.2, label=name, color=COLOURS.get(name))
        axis.set_ylim(bottom=0)
        axis.set_ylabel(unit, fontsize=7)
        axis.legend(fontsize=6, frameon=False)
        return
    last = {name: points[-1][1] for name, points in answers.items() if points}
    shown = {name: value for name, value in last.items() if value}
    colours = [COLOURS.get(name, "#8e8e8e") for name in shown]
    words = [f"{name} {value:.0f}" for name, value in shown.items()]
    if panel["type"] == "piechart":
        slices, _ = axis.pie(shown.values(), colors=colours)
        axis.legend(slices, words, fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(0.9, 0.5))
    else:
        axis.barh(words, list(shown.values()), color=colours)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, start_environment() as running:
        migrate(running, Path(name))
