"""examples/import: a plug-in of 30 chained queues, installed with pip, as its page says; and under SIGKILL."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from rowferry.queues import find_queue, list_following, list_queues, read_settings
from support.docs.built_packages import install
from support.docs.doc_pages import ROOT, read_blocks
from support.processes.processes import wait_for, wait_for_end
from support.queue.plug_in import forget

pytestmark = pytest.mark.site

EXAMPLE = ROOT / "examples" / "import"
README = EXAMPLE / "README.md"
SUMS = """
select queue_name, sum(entry_count)::int as entries, sum(migrated)::int as written, sum(failed)::int as failed,
    count(*) filter (where status = 'INIT')::int as waiting
from rowferry.batch_queue group by queue_name
"""
DONE = "select from rowferry.batch_queue where status = 'DONE'"
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


class Example:
    """The example in a folder of its own, installed for this process and those that it starts."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn

    def run(self, *command: str, expects: int = 0) -> str:
        """Run one command of the page and return what it said."""
        program = {"rowferry": [sys.executable, "-m", "rowferry_cli"], "python": [sys.executable]}[command[0]]
        run = subprocess.run(
            [*program, *command[1:]], cwd=self.folder, capture_output=True, text=True, timeout=300, check=False
        )
        assert run.returncode == expects, run.stdout + run.stderr
        return run.stdout

    def make_items(self, *options: str) -> Path:
        file = self.folder / "items.jsonl"
        file.write_text(self.run("python", "-m", "book_import", "items", *options))
        return file

    def enqueue(self, file: Path, batch_size: int) -> None:
        options = ["--items", file.name, f"--batch-size={batch_size}", "--yes"]
        self.run("rowferry", "enqueue", "--queue", "import_publisher", *options)

    def fetch(self, statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.cursor(row_factory=dict_row).execute(statement.encode()).fetchall()

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--max-batches=10"]
        return subprocess.Popen(
            [*command, "--min-parallel=500"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip has installed the example into."""
    source, target = tmp_path_factory.mktemp("example") / "import", tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, source)
    install(source, target)
    return target


@pytest.fixture
def example(installed: Path, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Example]:
    shutil.copytree(EXAMPLE, tmp_path / "import")
    monkeypatch.syspath_prepend(installed)
    path = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.chdir(tmp_path / "import")
    forget()
    yield Example(tmp_path / "import", database)
    for name in [name for name in sys.modules if name.partition(".")[0] == "book_import"]:
        del sys.modules[name]
    monkeypatch.undo()
    forget()


def test_each_entry_point_names_a_queue_of_the_chain(example: Example) -> None:
    from book_import.tables import TABLES

    from rowferry.plan_file import read_plan

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    queues = [f"import_{table}" for table in TABLES]
    assert len(queues) == 30
    assert list(project["entry-points"]["rowferry.queues"]) == queues
    assert set(queues) <= set(list_queues())
    assert [find_queue(queue).sides for queue in queues] == [frozenset()] * 30, "no bucket is opened"
    plan = read_plan(EXAMPLE / "rowferry.toml")
    assert plan.sides == ()
    assert list_following(queues[0], read_settings(plan)) == queues


def test_the_role_of_the_workers_gets_the_tables_of_all_queues(example: Example) -> None:
    example.run("python", "-m", "book_import", "tables")
    said = example.run("rowferry", "init", "--grants", "worker_role")
    missing = [table for table in read_tables() if f'"book"."{table}"' not in said and f"book.{table} " not in said]
    assert missing == [], said[-1500:]


def test_each_item_is_written_once_in_each_table_whoever_is_killed(example: Example) -> None:
    example.run("python", "-m", "book_import", "tables")
    items = example.make_items("--count=200", "--names=40")
    example.enqueue(items, 10)
    (before,) = example.fetch(DEADLOCKS)
    workers = [example.start_worker() for _ in range(3)]
    try:
        for number in range(3):
            done = 60 + 150 * number
            wait_for(lambda done=done: len(example.fetch(DONE)) >= done)
            workers[0].kill()
            workers.pop(0).wait()
            workers.append(example.start_worker())
        wait_for(lambda: not example.fetch("select 1 from rowferry.batch_queue where status <> 'DONE' limit 1"))
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            wait_for_end(worker)
    assert "count each item once" in example.run("python", "-m", "book_import", "check", items.name)
    assert [row for row in example.fetch(SUMS) if (row["entries"], row["written"]) != (200, 200)] == []
    assert example.fetch("select 1 from rowferry.batch_attempt where verdict is null"), "a worker died at its work"
    assert example.fetch(DEADLOCKS) == [before]


def test_each_command_of_the_page_does_what_it_says(example: Example) -> None:
    said: dict[str, str] = {}
    number = count()
    for block in read_blocks("sh", pages=[README]):
        for line in block.text.splitlines():
            command, _, file = line.partition(" >")
            words = shorten(command).split()
            if words[0] in {"cd", "pip"}:
                assert line in {"cd examples/import", "pip install --no-deps ."}
                continue
            output = example.run(*words)
            said[f"{next(number)} {command}"] = output
            if file:
                (example.folder / file).write_text(output)
    told = "\n".join(said.values())
    assert told.count("30 tables count each item once") == 3
    assert "naive: " in told
    assert " deadlocks" in told


def shorten(command: str) -> str:
    """Return a command with less to do."""
    command = command.replace("--count 4000", "--count 200").replace("--count 400 ", "--count 60 ")
    return command.replace("--processes 8", "--processes 2").replace("--seconds 20", "--seconds 2 --processes 1")


def read_tables() -> tuple[str, ...]:
    from book_import.tables import TABLES

    return TABLES
