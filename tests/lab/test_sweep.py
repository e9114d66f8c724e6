"""`rowferry sweep` compares settings, recommends one, writes its files and leaves nothing behind."""

import csv
import json
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

from support.processes.cli import Run
from support.processes.processes import wait_for

SMALL = ("--entries", "60", "--latency", "1ms", "--repetitions", "1")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that the account of a PostgreSQL may enter."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_sweep_compares_recommends_and_writes_its_files(run_rowferry: Run, tmp_path: Path) -> None:
    done = run_rowferry("sweep", *SMALL, "--batch-size", "30,10", "--parallel", "4", "--csv", "s.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 runs: 60 rows each, batches of 10, 30, 4 in flight, 1 ms; seed 1." in done.stdout
    assert done.stdout.count("entries/s  correct") == 2
    table = [line.split() for line in done.stdout.splitlines() if line.strip().endswith("%")]
    assert [row[:3] for row in table] == [["4", "10", "1"], ["4", "30", "1"]]
    assert "Recommended: 4 in flight and batches of " in done.stdout
    assert "  rowferry worker --parallel 4 --min-parallel 4\n" in done.stdout
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["kind"] for row in rows] == ["run", "run", "summary", "summary"]
    assert sorted(row["batch_size"] for row in rows[:2]) == ["10", "30"]


@pytest.mark.soak
def test_the_choice_of_the_worker_is_compared_and_takes_no_option(run_rowferry: Run) -> None:
    """In the suite, test_sweep_grid.py says so of made results."""
    done = run_rowferry("sweep", *SMALL, "--batch-size", "30", "--parallel", "4,auto", "--within", "99")
    assert (done.returncode, done.stderr) == (0, "")
    table = [line.split() for line in done.stdout.splitlines() if line.strip().endswith("%")]
    assert [row[0] for row in table] == ["auto", "4"]
    assert "Recommended: auto in flight and batches of 30." in done.stdout
    assert "  rowferry worker\n" in done.stdout


@pytest.mark.soak
def test_json_is_the_only_thing_on_stdout(run_rowferry: Run) -> None:
    done = run_rowferry("sweep", *SMALL, "--batch-size", "60", "--parallel", "4,auto", "--json", "--within", "99")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [run["correct"] for run in document["runs"]] == [True, True]
    assert document["settings"]["latency_seconds"] == 0.001
    assert [one["parallel"] for one in document["summary"]] == ["auto", 4]
    assert document["recommendation"]["parallel"] == "auto"


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed: the extra plot")
def test_the_plot_is_a_picture(run_rowferry: Run, tmp_path: Path) -> None:
    arguments = ["sweep", *SMALL, "--batch-size", "20", "--parallel", "4,auto", "--plot", "sweep.svg"]
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
        done.stderr
        == "rowferry: matplotlib, which draws plots, is not installed; run: pip install 'rowferry-lab[plot]'.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parallel", "16,many"], "'16,many' is not a list of numbers from 1 to 10,000, such as 16,64"),
        (["--batch-size", "auto"], "'auto' is not a list of numbers from 1 to 100,000"),
        (["--batch-size", "0"], "'0' is not a list of numbers from 1 to 100,000"),
        (["--parallel", ",".join(map(str, range(1, 25)))], "24 values are too many, 20 the most"),
        (
            ["--latency", "70"],
            "Invalid duration '70' for --latency: use a number and s, m, h, d or w (for exam",
        ),
        (["--latency", "11s"], "11s is longer than 10s"),
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
    ("deadly", "status"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.soak),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_sweep_that_is_stopped_leaves_its_csv_and_nothing_else(
    deadly: signal.Signals, status: int, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "s.csv"
    arguments = [
        sys.executable,
        "-m",
        "rowferry_cli",
        "sweep",
        "--entries",
        "60",
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
        wait_for(lambda: path.exists() and path.read_text().count("\n") >= 2)
        sweep.send_signal(deadly)
        shown, words = sweep.communicate(timeout=200)
    assert sweep.returncode == status
    assert "Traceback" not in words
    assert deadly == signal.SIGKILL or "of 18 runs; the servers are gone." in shown
    wait_for(lambda: not processes_of(temporary))
    wait_for(lambda: not list(temporary.iterdir()) or deadly == signal.SIGKILL)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert rows
    assert all(row["correct"] == "True" for row in rows)
