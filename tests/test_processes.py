"""`rowferry worker --processes`: several processes behind one command and one port."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from migration import Migration
from processes import is_running, same_packages, wait_for
from rowferry_worker.monitoring.server import SharedMetrics
from scrape import fetch, scrape, served_port, sum_of, values_by
from worker_process import WorkerProcess

TWO = ("--processes", "2", "--slots", "1")


def started_pids(worker: WorkerProcess) -> list[int]:
    """Return the process ids that the supervisor has started, in order."""
    lines = [json.loads(line) for line in worker.log.splitlines() if line.startswith("{")]
    return [line["pid"] for line in lines if line["message"] == "process started"]


def live_workers(migration: Migration) -> int:
    (row,) = migration.execute("select count(*) from rowferry.worker where stopped_at is null")
    return row["count"]


def test_processes_share_the_work_and_end_when_none_is_left(migration: Migration) -> None:
    migration.fill(40)
    migration.enqueue(batch_size=5)
    with migration.workers(1, *TWO, "--until-empty") as (worker,):
        assert worker.wait() == 0, worker.log
    migration.audit()
    assert len(migration.execute("select id from rowferry.worker")) == 2


def test_one_port_serves_what_all_processes_did(migration: Migration) -> None:
    migration.fill(40)
    migration.enqueue(batch_size=5)
    with migration.workers(1, *TWO, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_batch_seconds_count") == 8)
        wait_for(lambda: len(values_by(scrape(port), "process_cpu_seconds_total", "process")) == 2)
        wait_for(lambda: fetch(port, "/readyz")[0] == 200)
        samples = scrape(port)
        assert sum_of(samples, "rowferry_entries_total") == 40
        assert sum_of(samples, "rowferry_attempts_total", verdict="DONE") == 8
        assert sum_of(samples, "rowferry_copy_seconds_count") == 40
        assert sorted(values_by(samples, "process_cpu_seconds_total", "process")) == ["1", "2"]
        assert sorted(values_by(samples, "process_resident_memory_bytes", "process")) == ["1", "2"]
        assert fetch(port, "/healthz")[0] == 200


def test_a_killed_process_is_replaced_and_the_counters_go_on(migration: Migration) -> None:
    migration.fill(20)
    migration.enqueue(batch_size=5)
    with migration.workers(1, *TWO, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_entries_total") == 20)
        wait_for(lambda: live_workers(migration) == 2)
        os.kill(started_pids(worker)[0], signal.SIGKILL)
        wait_for(lambda: len(started_pids(worker)) == 3)
        assert sum_of(scrape(port), "rowferry_entries_total") == 20
        migration.fill(20, start=21)
        migration.enqueue(batch_size=5)
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


def test_a_mistake_ends_all_processes_with_status_2(migration: Migration) -> None:
    with migration.workers(1, *TWO, "--queue", "nonsense") as (worker,):
        assert worker.wait() == 2
    assert "There is no queue 'nonsense'" in worker.log
    assert "Traceback" not in worker.log


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
from datetime import timedelta
from rowferry_worker.supervisor import Supervisor
command = [sys.executable, "-c", {COUNTS_SIGNALS!r}]
sys.exit(Supervisor(1, command, timedelta(seconds=60)).run())
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
