"""`rowferry sweep` compares settings, shows mean, deviation and plot, and leaves nothing behind."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rowferry_lab.sweep.grid import AUTO, Result, Setting, summarise
from support.processes.cli import Run, refused
from support.processes.processes import wait_for

SMALL = ("--entries", "60", "--latency", "1ms", "--repetitions", "1")


def test_mean_and_deviation_are_those_of_the_correct_runs() -> None:
    def run(rate: float, *problems: str, parallel: int = 16) -> Result:
        return Result(Setting(parallel, 100), 1000, 1000 / rate, problems)

    many, single = summarise([*map(run, (90, 100, 110)), run(900, "a row is wrong"), run(50, parallel=64)])
    assert (many.setting, many.runs, round(many.mean, 3), round(many.stdev, 3)) == (Setting(16, 100), 3, 100, 10)
    assert (single.setting, single.runs, round(single.mean, 3), single.stdev) == (Setting(64, 100), 1, 50, 0)
    assert summarise([run(60, "a row is wrong")]) == []
    assert Setting(AUTO, 500) < Setting(4, 100) < Setting(4, 500)


def test_a_sweep_compares_and_writes_its_files(run_rowferry: Run, tmp_path: Path) -> None:
    plot = ["--plot", "s.svg"] if find_spec("matplotlib") else []
    arguments = ["--batch-size", "30,10", "--parallel", "4,auto", "--csv", "s.csv", *plot]
    done = run_rowferry("sweep", *SMALL, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("4 runs of 60 rows.")
    assert done.stdout.count("entries/s  correct") == 4
    table = [line.split() for line in done.stdout.partition("batches of  runs")[2].splitlines()[1:5]]
    assert [row[:3] for row in table] == [["auto", "10", "1"], ["auto", "30", "1"], ["4", "10", "1"], ["4", "30", "1"]]
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()))
    assert sorted((row["parallel"], row["batch_size"]) for row in rows) == sorted((row[0], row[1]) for row in table)
    assert all(row["correct"] == "True" and float(row["entries_per_second"]) > 0 for row in rows)
    assert not plot or "<svg" in (tmp_path / "s.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parallel", "16,many"], "'16,many' is not a list of numbers from 1 to 100,000, such as 16,64"),
        (["--batch-size", "auto"], "'auto' is not a list of numbers from 1 to 100,000"),
        (["--batch-size", "0"], "'0' is not a list of numbers from 1 to 100,000"),
        (["--latency", "70"], "'--latency': '70' is no duration: use a number and s, m, h, d or w (for example "),
        (["--csv", "none/s.csv"], "The CSV none/s.csv cannot be written: No such file or directory."),
        (["--plot", "s.gif"], "A plot needs a name in .png, .svg, .pdf and matplotlib: pip install"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_started(
    run_rowferry: Run, arguments: list[str], words: str
) -> None:
    assert words in refused(run_rowferry("sweep", *arguments))


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that the account of a PostgreSQL may enter."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose temporary files are in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):  # one that ends meanwhile makes a longer pattern fail
        with suppress(OSError):
            if f"TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
@pytest.mark.soak
@pytest.mark.parametrize(
    ("deadly", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_sweep_that_is_stopped_leaves_its_csv_and_nothing_else(
    deadly: signal.Signals, status: int, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "s.csv"
    slow = ["--entries", "60", "--latency", "100ms", "--csv", str(path), "--parallel", "4,50"]
    with subprocess.Popen(
        [sys.executable, "-m", "rowferry_cli", "sweep", *slow],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as sweep:
        wait_for(lambda: path.exists() and path.read_text().count("\n") >= 2)
        sweep.send_signal(deadly)
        _, words = sweep.communicate(timeout=200)
    assert sweep.returncode == status
    assert "Traceback" not in words
    wait_for(lambda: not processes_of(temporary))
    wait_for(lambda: not list(temporary.iterdir()) or deadly == signal.SIGKILL)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert rows
    assert all(row["correct"] == "True" for row in rows)
