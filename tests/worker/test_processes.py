"""`rowferry worker` of several processes: one for each core unless told, behind one command and one port."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowferry.errors import UsageError
from rowferry_worker.monitoring import server
from rowferry_worker.monitoring.metrics import FOLDER
from rowferry_worker.monitoring.server import SharedMetrics, share_metrics
from rowferry_worker.supervisor import supervised_process
from rowferry_worker.supervisor.supervisor import Supervisor
from support.entries.migration import Migration
from support.processes.clock import Clock
from support.processes.processes import is_running, run_to_end, same_packages, wait_for
from support.processes.scrape import fetch, scrape, served_port, sum_of, values_by
from support.processes.worker_process import WorkerProcess

TWO = ("--processes", "2", "--max-batches=1")
SILENCE = timedelta(seconds=60)
WORKER = [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty", "--log-format=json"]


def read_lines(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def started_pids(worker: WorkerProcess) -> list[int]:
    """Return the process ids that the supervisor has started, in order."""
    return [line["pid"] for line in read_lines(worker.log) if line["message"] == "process started"]


def live_workers(migration: Migration) -> int:
    (row,) = migration.execute("select count(*) from rowferry.worker where stopped_at is null")
    return row["count"]


def test_one_port_serves_what_all_processes_did(migration: Migration) -> None:
    migration.given(40, 5)
    with migration.workers(1, *TWO, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_batch_seconds_count") == 8)
        wait_for(lambda: len(values_by(scrape(port), "process_cpu_seconds_total", "process")) == 2)
        wait_for(lambda: fetch(port, "/readyz")[0] == 200)
        samples = scrape(port)
        assert sum_of(samples, "rowferry_entries_total") == 40
        assert sum_of(samples, "rowferry_attempts_total", verdict="DONE") == 8
        assert sum_of(samples, "rowferry_object_seconds_count") == 40
        assert sorted(values_by(samples, "process_cpu_seconds_total", "process")) == ["1", "2"]
        assert sorted(values_by(samples, "process_resident_memory_bytes", "process")) == ["1", "2"]
        assert fetch(port, "/healthz")[0] == 200


def test_a_killed_process_is_replaced_and_the_counters_go_on(migration: Migration) -> None:
    migration.given(20, 5)
    with migration.workers(1, *TWO, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_entries_total") == 20)
        wait_for(lambda: live_workers(migration) == 2)
        os.kill(started_pids(worker)[0], signal.SIGKILL)
        wait_for(lambda: len(started_pids(worker)) == 3)
        assert sum_of(scrape(port), "rowferry_entries_total") == 20
        migration.given(20, batch_size=5, start=21)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_entries_total") == 40)
        wait_for(lambda: len(values_by(scrape(port), "process_cpu_seconds_total", "process")) == 2)
        wait_for(lambda: fetch(port, "/readyz")[0] == 200)
        assert sum_of(scrape(port), "rowferry_objects_in_flight") == 0
        wait_for(lambda: len(migration.execute("select id from rowferry.worker")) == 3)
    migration.audit()


def test_a_signal_to_the_supervisor_stops_every_process_in_order(migration: Migration) -> None:
    with migration.workers(1, *TWO) as (worker,):
        wait_for(lambda: live_workers(migration) == 2)
        worker.signal(signal.SIGINT)
        assert worker.wait() == 0
    assert live_workers(migration) == 0
    assert not any(is_running(pid) for pid in started_pids(worker))


def test_a_mistake_ends_all_processes_with_status_2_and_is_said_once(migration: Migration) -> None:
    with migration.workers(1, *TWO, "--queue", "nonsense") as (worker,):
        assert worker.wait() == 2
    assert worker.log.count("rowferry: There is no queue 'nonsense'") == 1
    assert "Traceback" not in worker.log


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to cores")
@pytest.mark.by_day("2")
@pytest.mark.parametrize("cores", [1, 2])
def test_without_an_option_there_is_a_process_for_each_core(cores: int, migration: Migration) -> None:
    if len(os.sched_getaffinity(0)) < cores:
        pytest.skip(f"there are no {cores} cores here")
    migration.given(10, 5)
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    program = f"import os, sys; os.sched_setaffinity(0, {chosen}); os.execv(sys.executable, {WORKER})"
    done = run_to_end([sys.executable, "-c", program])
    assert done.returncode == 0, done.stderr
    (measured,) = [line for line in read_lines(done.stderr) if line["message"] == "machine measured"]
    assert (measured["cores"], measured["processes"]) == (cores, cores)
    assert min(measured["memory_mb"], measured["descriptors"], measured["max_in_flight"]) > 0
    assert done.stderr.count('"process started"') == (cores if cores > 1 else 0)
    assert len(migration.execute("select from rowferry.worker")) == cores
    migration.audit()


def test_variables_of_the_options_are_for_the_supervisor_alone(migration: Migration) -> None:
    """Its processes start no processes of their own, and serve no metrics."""
    environment = {"ROWFERRY_WORKER_PROCESSES": "2", "ROWFERRY_WORKER_METRICS_PORT": "0"}
    environment |= {"ROWFERRY_WORKER_QUEUE": "migrate verify", "ROWFERRY_LOCK_TIMEOUT": "3"}
    with migration.workers(1, **environment) as (worker,):
        wait_for(lambda: live_workers(migration) == 2)
        wait_for(lambda: fetch(served_port(worker), "/readyz")[0] == 200)
        os.kill(started_pids(worker)[0], signal.SIGKILL)
        wait_for(lambda: len(started_pids(worker)) == 3)
        replacement = Path(f"/proc/{started_pids(worker)[2]}")
        if replacement.exists():
            wait_for(lambda: b"--processes=1" in (replacement / "cmdline").read_bytes())
            assert "ROWFERRY_WORKER_" not in (replacement / "environ").read_text()
        wait_for(lambda: len(migration.execute("select from rowferry.worker")) == 3)
        assert migration.execute("select distinct queues from rowferry.worker") == [{"queues": ["migrate", "verify"]}]


HANGS = """
import sys, time
from rowferry_worker.service import notify
notify("READY=1", "STATUS=working")
print("started", flush=True)
while True:
    time.sleep(0.05)
    if len(sys.argv) < 2:
        notify("WATCHDOG=1")
"""


@pytest.mark.parametrize("hangs", [True, False])
def test_a_process_that_makes_no_progress_is_replaced(hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    command = [sys.executable, "-c", HANGS, *(["hang"] if hangs else [])]
    lines: list[str] = []
    clock = Clock()
    monkeypatch.setattr(supervised_process, "time", clock)
    with Supervisor(1, command, relay=lambda _, line: lines.append(line), longest_silence=SILENCE) as supervisor:
        (place,) = supervisor._places
        wait_for(lambda: supervisor.replace_dead() or place._last_sign)
        if hangs:
            wait_for(lambda: clock.move(SILENCE.total_seconds()) or supervisor.replace_dead() == 1)
            return
        for _ in range(3):
            clock.move(SILENCE.total_seconds() / 2)
            wait_for(lambda: supervisor.replace_dead() or place._last_sign == clock.now)
        assert place._last_sign == clock.now, "it was replaced although it made progress"


@pytest.mark.skipif(sys.platform != "linux", reason="only there processes are forked")
def test_processes_begin_with_what_their_supervisor_has_imported(migration: Migration) -> None:
    """They share its memory, and hold none of its files: neither its port nor the pipes of others."""
    with migration.workers(1, *TWO, "--metrics-port", "0") as (worker,):
        wait_for(lambda: live_workers(migration) == 2)
        port = served_port(worker)
        supervisor, *processes = (Path(f"/proc/{pid}") for pid in (worker.process.pid, *started_pids(worker)))
        assert {each.joinpath("cmdline").read_bytes() for each in processes} == {(supervisor / "cmdline").read_bytes()}
        worker.kill()
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))
        wait_for(lambda: live_workers(migration) == 0)


def test_an_unreachable_database_ends_the_command_before_anything_is_started(migration: Migration) -> None:
    ended = migration.run("worker", *TWO, DATABASE_URL="postgresql://127.0.0.1:1/nothing")
    assert ended.returncode == 2
    assert ended.stderr.count("PostgreSQL cannot be reached") == 1
    assert "process started" not in ended.stderr


def test_processes_whose_supervisor_was_killed_stop_by_themselves(migration: Migration) -> None:
    with migration.workers(1, *TWO) as (worker,):
        wait_for(lambda: live_workers(migration) == 2)
        worker.kill()
        wait_for(lambda: live_workers(migration) == 0)
        wait_for(lambda: not any(is_running(pid) for pid in started_pids(worker)))


def test_a_file_that_a_starting_process_is_just_making_fails_no_scrape(tmp_path: Path) -> None:
    (tmp_path / "counter_1.db").touch()
    with SharedMetrics(tmp_path).serve("127.0.0.1", 0, dict) as endpoint:
        assert scrape(endpoint.port) == []
        assert fetch(endpoint.port, "/readyz")[0] == 503


@pytest.mark.parametrize("shared_memory", ["", "missing"])
def test_metrics_of_several_processes_need_no_tmp(
    shared_memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container with a read-only root."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    monkeypatch.setattr(server, "SHARED_MEMORY", str(tmp_path / shared_memory))
    if shared_memory:
        with pytest.raises(UsageError, match="set TMPDIR, or --processes 1"), share_metrics():
            pytest.fail("there is no folder to share")
    else:
        with share_metrics() as shared:
            assert Path(shared.environment[FOLDER]).parent == tmp_path
        assert not list(tmp_path.iterdir())


COUNTS_SIGNALS = """
import signal, sys, time
signals = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: signals.append(1))
print("listening", flush=True)
while len(signals) < 2:
    time.sleep(0.01)
print("two signals", flush=True)
"""
SUPERVISES = f"""
import sys
from contextlib import nullcontext
from datetime import timedelta
from rowferry_worker.supervisor.supervisor import Supervisor
command = [sys.executable, "-c", {COUNTS_SIGNALS!r}]
sys.exit(Supervisor(1, command, timedelta(seconds=60)).run(nullcontext()))
"""


def test_a_second_signal_is_passed_on_as_well() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISES], env=same_packages(), stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "listening\n"
        supervisor.send_signal(signal.SIGTERM)
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.stdout.readline() == "two signals\n"
        assert supervisor.wait(100) == 0


FORKING = """
import os, subprocess, sys, tempfile
from rowferry_worker.supervisor.fork import instead_of_exec
with tempfile.TemporaryDirectory() as folder:
    go_on = instead_of_exec(lambda: sys.exit(3), os.environ)
    print(subprocess.Popen([sys.executable, "-c", ""], preexec_fn=go_on).wait(), os.path.isdir(folder))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there processes are forked")
def test_the_end_of_a_process_leaves_the_folders_of_its_supervisor() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True)
    assert done.stdout == "3 True\n"
