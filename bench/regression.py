"""Hold this checkout against earlier commits: entries a second and a worker's CPU an entry, in minutes.

    python -m bench.regression [COMMIT ...] [--entries 20000] [--rounds 3]

Each commit (HEAD where none is given) gets a worktree and an environment of its own below `build/regression`. The runs
are interleaved, on the servers of the headlines (bench/servers.py), which answer in different ways; --servers names
some of them. Run it before a change of what every object passes through lands.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.environment import execute, run_measured, running_postgres
from bench.migration import make_table
from bench.servers import SERVERS, Objects, find_obstacles, trust

ROOT = Path(__file__).parent.parent
TREES = ROOT / "build" / "regression"
LATENCY_MS, BODY_BYTES = 70, 20_000
IN_FLIGHT = 512
PLAN = """\
[migration]
name = "bench"
[legacy]
bucket = "legacy"
endpoint_url = "{url}"
{legacy}
[production]
bucket = "production"
endpoint_url = "{url}"
[[entries]]
table = "pictures"
id = "id"
key = "path"
from = "image/"
to = "avatar/"
"""
SPAN = """
select sum(migrated)::int, extract(epoch from max(finished_at) - min(started_at))::float
from rowferry.batch_queue where status = 'DONE'
"""


class Figures(NamedTuple):
    """What a run has shown."""

    pace: float
    """Entries a second, from the first claim to the last verdict."""
    cpu: float
    """Of the worker, in ms an entry, its start included."""
    without_start: float
    """The same without what a worker uses that finds no batch."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A checkout with its environment."""

    name: str
    folder: Path
    legacy: str = ""
    """A line of the plan's [legacy]."""
    command: tuple[str, ...] = ()
    """What runs `rowferry` instead of the checkout's own program."""

    def run(self, url: str, rows: int, trusted: Mapping[str, str]) -> "Figures":
        """Migrate so many rows with one worker."""
        with running_postgres() as postgres, tempfile.TemporaryDirectory() as folder:
            execute("drop schema rowferry cascade")  # that of this checkout
            make_table(rows)
            plan = Path(folder, "rowferry.toml")
            plan.write_text(PLAN.format(url=url, legacy=self.legacy), encoding="utf-8")
            # A start would compile each module anew where Python is told to write no bytecode.
            kept = {"PYTHONDONTWRITEBYTECODE": ""}
            environment = {"ROWFERRY_PLAN": str(plan), "DATABASE_URL": postgres.dsn(), **trusted, **kept}
            self._call(environment, "init")
            # The stub keeps no bytes, which is a problem to a check.
            subprocess.run(
                [self._program, "check"], env={**os.environ, **environment}, capture_output=True, check=False
            )
            worker = [
                *(self.command or [self._program]),
                "worker",
                "--processes=1",
                "--until-empty",
                "--log-format=json",
                *self._list_bounds(),
            ]
            start = run_measured(worker, environment)
            self._call(environment, "enqueue", "--yes", "--batch-size=250")
            used = run_measured(worker, environment)
            ((migrated, seconds),) = execute(SPAN)
        assert migrated == rows, f"{self.name} migrated {migrated} of {rows} entries"
        without_start = used.cpu_seconds - start.cpu_seconds
        return Figures(rows / seconds, 1000 * used.cpu_seconds / rows, 1000 * without_start / rows)

    def run_at(self, server_name: str, rows: int) -> "Figures":
        """Migrate so many rows at a fresh server, since one remembers what was written."""
        with SERVERS[server_name](Objects(rows, BODY_BYTES, LATENCY_MS)) as server:
            return self.run(server.endpoint_url, rows, trust("AWS_CA_BUNDLE", server))

    def _list_bounds(self) -> list[str]:
        """Return the options by which so many objects are in flight whatever happens; one had another name once."""
        asked = subprocess.run(
            [self._program, "worker", "--min-parallel=1", "--help"], capture_output=True, check=False
        )
        least = "--parallel-least" if asked.returncode else "--min-parallel"
        return [f"--parallel={IN_FLIGHT}", f"{least}={IN_FLIGHT}"]

    @property
    def _program(self) -> str:
        return str(self.folder / ".venv" / "bin" / "rowferry")

    def _call(self, environment: dict[str, str], *arguments: str) -> None:
        run_measured([self._program, *arguments], environment)


def prepare(commit: str) -> Contestant:
    """Return a commit with a worktree and an environment of its own; both are kept for the next time."""
    revision = _git("rev-parse", "--short=8", f"{commit}^{{commit}}")
    folder = TREES / revision
    if not folder.is_dir():
        _git("worktree", "add", "--detach", str(folder), revision)
    subprocess.run(["make", "--no-print-directory", ".venv/.with-dev"], cwd=folder, check=True)
    return Contestant(revision, folder)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def measure(
    contestants: list[Contestant], rows: int, rounds: int, servers: Sequence[str]
) -> dict[str, dict[str, list[Figures]]]:
    """Return the figures of each run, by server and contestant; every second round goes the other way round."""
    seen: dict[str, dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for name in servers:
            for contestant in contestants[:: 1 if number % 2 == 0 else -1]:
                figures = contestant.run_at(name, rows)
                seen[name][contestant.name].append(figures)
                words = "{:8,.0f} entries/s {:7.3f} ms, {:7.3f} without the start".format(*figures)
                print(f"{name:<10} {contestant.name:<16} {words}", file=sys.stderr)
    return seen


def tell(seen: dict[str, dict[str, list[Figures]]], base: str) -> None:
    """Print the medians, and the CPU without the start against that of the base."""
    heads = "entries/s", "CPU, ms an entry", "without start", f"against {base}"
    print(f"{'server':<10} {'commit':<16} {heads[0]:>10} {heads[1]:>17} {heads[2]:>14} {heads[3]:>18}")
    for server, by_name in seen.items():
        reference = median(run.without_start for run in by_name[base])
        for name, runs in by_name.items():
            pace, cpu, net = (median(column) for column in zip(*runs, strict=True))
            print(f"{server:<10} {name:<16} {pace:>10,.0f} {cpu:>17.3f} {net:>14.3f} {net / reference:>18.2f}")
    print(json.dumps({"load": os.getloadavg(), "cores": os.cpu_count(), "in_flight": IN_FLIGHT}))


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", default=["HEAD"], help="Earlier commits, the first of which is the base")
    parser.add_argument("--entries", type=int, default=20_000, help="Rows that each run migrates")
    parser.add_argument("--rounds", type=int, default=3, help="Runs of each there and back")
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS), help="Those to run against")
    options = parser.parse_args()
    able = {name: obstacle for name, obstacle in find_obstacles().items() if name in options.servers}
    for name, obstacle in able.items():
        if obstacle is not None:
            print(f"{name}: {obstacle}", file=sys.stderr)
    contestants = [*map(prepare, options.commits), Contestant("now", ROOT)]
    contestants.append(Contestant("now, immutable", ROOT, legacy="immutable = true"))
    servers = [name for name, obstacle in able.items() if obstacle is None]
    tell(measure(contestants, options.entries, options.rounds, servers), contestants[0].name)


if __name__ == "__main__":
    main()
