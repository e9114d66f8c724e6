"""The package that docs/own-queue.md builds: installed with pip, run under SIGKILL, held to the suite of all queues."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.docs.built_packages import install
from support.docs.doc_pages import ROOT
from support.docs.statements import split_statements
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.cli import run_in_own_process, well
from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess

pytestmark = pytest.mark.site

PAGE = ROOT / "docs" / "own-queue.md"
FILE = re.compile(r"^`(?P<name>[\w./-]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = re.compile(r"^```text\n(?P<text>\{.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ENTRIES = 150
KILLS = 3


def read_files() -> dict[str, str]:
    """Return the files of the package by their names."""
    empty = re.findall(r"an\s+empty `([\w./]+)`", PAGE.read_text(encoding="utf-8"))
    return dict.fromkeys(empty, "") | {
        found["name"]: found["text"] for found in FILE.finditer(PAGE.read_text(encoding="utf-8"))
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip has installed the package of the page into."""
    source, target = tmp_path_factory.mktemp("rowferry-sizes"), tmp_path_factory.mktemp("site")
    for name, text in read_files().items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    install(source, target)
    return target


@pytest.fixture
def path_to_it(installed: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))}


@pytest.fixture
def shop(migration: Migration) -> Migration:
    """The plan of the page, rows that point at production objects, and the tables of both queues."""
    for block in SQL.finditer(PAGE.read_text(encoding="utf-8")):
        for statement in split_statements(block["text"]):
            if statement.startswith("create table"):
                migration.execute(statement)
    for number in range(1, ENTRIES + 1):
        migration.production.put(f"{TO}{number}", bytes(number))
    migration.insert({str(number): f"{TO}{number}" for number in range(1, ENTRIES + 1)})
    migration.plan["queue"] = {"sizes": {"into": "public.object_size"}}
    return migration.write_plan()


def read_sizes(migration: Migration) -> dict[str, int]:
    return {row["key"]: row["bytes"] for row in migration.execute("select key, bytes from public.object_size")}


def test_a_queue_of_another_package_is_run_to_its_end_under_sigkill(
    shop: Migration, path_to_it: dict[str, str]
) -> None:
    well(shop.run("run", "sizes", "-b", "20", "--processes", "0", "--yes", **path_to_it))
    killed: list[int] = []
    for kill in range(KILLS):
        with shop.workers(2, "--queue=sizes", "--until-empty", **path_to_it) as workers:
            least = ENTRIES * kill // KILLS + 1
            wait_for(lambda workers=workers, least=least: len(read_sizes(shop)) >= least or all_ended(workers))
            killed += [worker.process.pid for worker in workers if worker.process.poll() is None]
        shop.execute("delete from rowferry.worker")  # so that no claim waits for the heartbeat of a dead worker
    with shop.workers(2, "--queue=sizes", "--until-empty", **path_to_it) as workers:
        assert [worker.wait() for worker in workers] == [0, 0]
    assert killed
    assert read_sizes(shop) == {f"{TO}{number}": number for number in range(1, ENTRIES + 1)}
    assert shop.counts() == {"migrated": ENTRIES}
    shop.check_balance()


def all_ended(workers: list[WorkerProcess]) -> bool:
    return all(worker.process.poll() is not None for worker in workers)


def test_a_worker_serves_it_without_being_told(shop: Migration, path_to_it: dict[str, str]) -> None:
    done = well(shop.run("run", "sizes", "--processes", "1", "--yes", **path_to_it))
    assert f"sizes written {ENTRIES}" in done.stdout
    again = well(shop.run("run", "sizes", "--processes", "1", "--yes", **path_to_it))
    assert f"known {ENTRIES}" in again.stdout
    assert shop.counts() == {"migrated": ENTRIES, "kept": ENTRIES}


def test_the_items_of_the_page_are_written_without_s3(shop: Migration, path_to_it: dict[str, str]) -> None:
    shop.plan["queue"] = {"prices": {}}
    for name in ("legacy", "production", "entries"):
        del shop.plan[name]
    shop.write_plan()
    (lines,) = LINES.finditer(PAGE.read_text(encoding="utf-8"))
    (shop.folder / "prices.jsonl").write_text(lines["text"], encoding="utf-8")
    command = "rowferry enqueue --queue prices --items prices.jsonl"
    assert command in PAGE.read_text(encoding="utf-8").splitlines()
    well(run_in_own_process([*command.split()[1:], "--yes"], {**os.environ, **path_to_it}, shop.folder))
    for block in SQL.finditer(PAGE.read_text(encoding="utf-8")):
        for statement in split_statements(block["text"]):
            if statement.startswith("select"):
                shop.execute(statement)
    without_s3 = {name: "" for name in shop.environment if name.startswith("ROWFERRY_") and name != "ROWFERRY_PLAN"}
    with shop.workers(1, "--until-empty", **path_to_it, **without_s3) as (worker,):
        assert worker.wait() == 0
    prices = shop.execute("select sku, price::text from public.price order by sku")
    assert [tuple(row.values()) for row in prices] == [("A-1", "9.90"), ("A-2", "24.00"), ("A-3", "7.50")]
    assert shop.counts() == {"migrated": 3}


def test_the_suite_holds_them_to_their_promises(path_to_it: dict[str, str]) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    suite = ["tests/queues/test_queue_conformance.py", "-k", "sizes or prices", "-m", "soak or not soak", "-q"]
    command, environment = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *suite], {**clean, **path_to_it}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=590)
    assert done.returncode == 0, done.stdout[-8000:]
    counts = re.search(r"(\d+) passed", done.stdout)
    assert counts
    assert int(counts[1]) >= 2 * 20
