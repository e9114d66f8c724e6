"""`rowferry sweep` migrates again and again, checks every end, recommends a setting and leaves nothing behind."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest

from cli import Run
from doc_pages import ROOT, read_table
from processes import wait_for
from rowferry.commands.sweep import command
from rowferry.sweep import run
from rowferry.sweep.grid import Grid, Setting, Trial
from rowferry.sweep.run import Arena, bound_run, run_trial
from rowferry.sweep.session import open_arena

SMALL = ("--entries", "60", "--latency", "1ms", "--repetitions", "1")
LEGACY, PRODUCTION = "sketch-legacy-s3", "sketch-production-s3"


def make_grid(**more: Any) -> Grid:
    latency = timedelta(milliseconds=1)
    settings = {"repetitions": 1, "entries": 60, "slots": 2, "seed": 3, "latency": latency, **more}
    return Grid(batch_sizes=(10,), parallels=(8,), **settings)


@pytest.fixture(scope="module")
def _arena() -> Iterator[Arena]:
    with open_arena() as arena:
        yield arena


@pytest.fixture
def arena(_arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Arena:
    """The servers of a sweep, and the environment that leads to them."""
    for name, value in _arena.stage.environment.items():
        monkeypatch.setenv(name, value)
    return _arena


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that the account of a PostgreSQL may enter."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_run_is_correct_and_counts_its_legacy_entries(arena: Arena) -> None:
    grid = make_grid()
    first, again = (run_trial(arena, grid, Trial(number, Setting(8, 10), number)) for number in (1, 2))
    assert (first.problems, again.problems) == ((), ())
    assert first.entries == again.entries
    assert 15 < first.entries < 45
    assert min(first.duration, first.worker_cpu, first.server_cpu, again.duration) > timedelta(0)


def rewrite_production(s3: Any, arena: Arena) -> None:
    key = arena.connection.execute("select min(path) as key from public.avatars").fetchone()["key"]
    s3.put_object(Bucket=PRODUCTION, Key=key, Body=b"something else", ContentType="image/png")


def lose_the_headers(s3: Any, arena: Arena) -> None:
    for item in s3.list_objects_v2(Bucket=PRODUCTION)["Contents"]:
        found = s3.get_object(Bucket=PRODUCTION, Key=item["Key"])
        s3.put_object(Bucket=PRODUCTION, Key=item["Key"], Body=found["Body"].read())


def lose_the_tags(s3: Any, arena: Arena) -> None:
    """Write an object with tags again without them, or with others."""
    for item in s3.list_objects_v2(Bucket=PRODUCTION)["Contents"]:
        found = s3.get_object(Bucket=PRODUCTION, Key=item["Key"])
        if s3.get_object_tagging(Bucket=PRODUCTION, Key=item["Key"])["TagSet"]:
            said = {name: found[name] for name in ("ContentType", "CacheControl", "Metadata") if name in found}
            tagging = "album=9&kind=avatar"
            s3.put_object(Bucket=PRODUCTION, Key=item["Key"], Body=found["Body"].read(), Tagging=tagging, **said)
            return


def delete_production(s3: Any, arena: Arena) -> None:
    s3.delete_object(Bucket=PRODUCTION, Key=s3.list_objects_v2(Bucket=PRODUCTION)["Contents"][0]["Key"])


def add_production(s3: Any, arena: Arena) -> None:
    s3.put_object(Bucket=PRODUCTION, Key="avatar/stranger.png", Body=b"")


def delete_legacy(s3: Any, arena: Arena) -> None:
    s3.delete_object(Bucket=LEGACY, Key=s3.list_objects_v2(Bucket=LEGACY)["Contents"][0]["Key"])


def rewrite_legacy_with_the_same_bytes(s3: Any, arena: Arena) -> None:
    key = s3.list_objects_v2(Bucket=LEGACY)["Contents"][0]["Key"]
    s3.put_object(Bucket=LEGACY, Key=key, Body=s3.get_object(Bucket=LEGACY, Key=key)["Body"].read())


def put_a_row_back(s3: Any, arena: Arena) -> None:
    arena.connection.execute("update public.avatars set path = 'image/avatar-1.png' where id = 1")


def lose_a_row(s3: Any, arena: Arena) -> None:
    arena.connection.execute("delete from public.avatars where id = 1")


def lose_a_batch(s3: Any, arena: Arena) -> None:
    arena.connection.execute("delete from rowferry.batch_queue where id = (select min(id) from rowferry.batch_queue)")


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (rewrite_production, "1 production objects are missing or not equal"),
        (lose_the_headers, "production objects are missing or not equal"),
        (lose_the_tags, "1 production objects are missing or not equal"),
        (delete_production, "1 production objects are missing or not equal"),
        (add_production, "1 production objects that nobody asked for: avatar/stranger.png"),
        (delete_legacy, "1 legacy objects were written, deleted or added"),
        (rewrite_legacy_with_the_same_bytes, "1 legacy objects were written, deleted or added"),
        (put_a_row_back, "1 rows have another key than they must: image/avatar-1.png"),
        (lose_a_row, "59 rows instead of 60"),
        (lose_a_batch, "entries migrated"),
    ],
)
def test_whatever_is_wrong_after_a_run_is_found(
    tamper: Callable[[Any, Arena], None], words: str, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker does its work; then something happens that must not."""
    work = run._work

    def work_badly(setting: Setting, grid: Grid) -> timedelta:
        used = work(setting, grid)
        arena.server.set_latency(timedelta(0))
        s3 = arena.stage.open_s3()
        tamper(s3, arena)
        s3.close()
        return used

    monkeypatch.setattr(run, "_work", work_badly)
    result = run_trial(arena, make_grid(), Trial(1, Setting(8, 10), 1))
    assert len(result.problems) == 1, result.problems
    assert words in result.problems[0]


def test_a_worker_that_takes_too_long_is_ended(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_LEAST", timedelta(seconds=0.2))
    monkeypatch.setattr(run, "PATIENCE", 0)
    with pytest.raises(run.RowferryError, match=r"8 in flight and batches of 10 was not done within 0 s"):
        run_trial(arena, make_grid(), Trial(1, Setting(8, 10), 1))
    wait_for(lambda: not arena.connection.execute("select from rowferry.batches_in_hand").fetchall())


def test_a_run_may_take_as_long_as_its_latency_asks_for() -> None:
    slow = make_grid(latency=timedelta(seconds=10), entries=1000)
    assert bound_run(slow, Setting(1, 10)) > timedelta(seconds=10) * 1000
    assert bound_run(make_grid(), Setting(10, 10)) < timedelta(minutes=5)


def test_a_sweep_compares_recommends_and_writes_its_files(run_rowferry: Run, tmp_path: Path) -> None:
    done = run_rowferry("sweep", *SMALL, "--batch-size", "30,10", "--parallel", "4", "--csv", "s.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 runs: 60 rows each, batches of 10, 30, 4 in flight, 1 ms; seed 1." in done.stdout
    assert done.stdout.count("entries/s  correct") == 2
    assert "● batches of 10   ▲ batches of 30" in done.stdout
    assert "Recommended: 4 in flight and batches of " in done.stdout
    assert "  rowferry worker --parallel 4 --slots 2\n" in done.stdout
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["kind"] for row in rows] == ["run", "run", "summary", "summary"]
    assert sorted(row["batch_size"] for row in rows[:2]) == ["10", "30"]


def test_json_is_the_only_thing_on_stdout(run_rowferry: Run) -> None:
    done = run_rowferry("sweep", *SMALL, "--batch-size", "20", "--parallel", "4,8", "--json", "--within", "99")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [run["correct"] for run in document["runs"]] == [True, True]
    assert document["settings"]["latency_seconds"] == 0.001
    assert [one["parallel"] for one in document["summary"]] == [4, 8]
    assert document["recommendation"]["parallel"] == 4


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed: the extra plot")
def test_the_plot_is_a_picture(run_rowferry: Run, tmp_path: Path) -> None:
    arguments = ["sweep", *SMALL, "--batch-size", "20", "--parallel", "4", "--plot", "sweep.svg"]
    done = run_rowferry(*arguments)
    assert (done.returncode, "Plot: sweep.svg" in done.stdout) == (0, True)
    assert "<svg" in (tmp_path / "sweep.svg").read_text(encoding="utf-8")


def test_without_matplotlib_a_plot_is_refused_before_the_first_run(run_rowferry: Run, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'matplotlib' else find(name, package)\n"
    )
    done = run_rowferry("sweep", "--plot", "s.png", PYTHONPATH=str(tmp_path / "hidden"))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "rowferry: matplotlib, which draws plots, is not installed; run: pip install 'rowferry[plot]'.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parallel", "16,many"], "'16,many' is not a list of numbers from 1 to 10,000, such as 16,64"),
        (["--batch-size", "0"], "'0' is not a list of numbers from 1 to 100,000"),
        (["--parallel", ",".join(map(str, range(1, 25)))], "24 values are too many, 20 the most"),
        (["--latency", "70"], "'70' is no time such as 70ms or 0.5s"),
        (["--latency", "11s"], "'11s' is longer than 10s"),
        (["--csv", "none/s.csv"], "The CSV none/s.csv cannot be written: No such file or directory."),
        (["--plot", "s.gif"], "The plot s.gif must end in .png, .svg or .pdf."),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_started(
    run_rowferry: Run, arguments: list[str], words: str
) -> None:
    done = run_rowferry("sweep", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_the_options_are_all_explained() -> None:
    rows = read_table(ROOT / "docs" / "sweep.md", "Measure it here: `rowferry sweep`")
    table = {row[0].strip("`"): row[1].strip("`") for row in rows}
    options = {option.opts[-1]: option for option in command.params if isinstance(option, click.Option)}
    assert set(table) == set(options)
    shown = {name: option.default for name, option in options.items() if option.show_default}
    assert {name: table[name] for name in shown} == {
        name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in shown.items()
    }


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose temporary files are in the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"TMPDIR={folder}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("deadly", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_sweep_that_is_stopped_leaves_its_csv_and_nothing_else(
    deadly: signal.Signals, status: int, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "s.csv"
    arguments = [
        sys.executable,
        "-m",
        "rowferry",
        "sweep",
        "--entries",
        "400",
        "--latency",
        "100ms",
        "--csv",
        str(path),
    ]
    with subprocess.Popen(
        [*arguments, "--parallel", "4,50"],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as sweep:
        wait_for(lambda: path.exists() and path.read_text().count("\n") >= 2, deadline=timedelta(seconds=60))
        sweep.send_signal(deadly)
        shown, words = sweep.communicate(timeout=60)
    assert sweep.returncode == status
    assert "Traceback" not in words
    assert deadly == signal.SIGKILL or "of 18 runs; the servers are gone." in shown
    wait_for(lambda: not processes_of(temporary), deadline=timedelta(seconds=30))
    wait_for(lambda: not list(temporary.iterdir()) or deadly == signal.SIGKILL)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert rows
    assert all(row["correct"] == "True" for row in rows)
