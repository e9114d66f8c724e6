"""What a worker says over HTTP: its metrics, that it lives, that it is ready."""

import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from rowferry.errors import UsageError
from rowferry.health_server import Endpoint
from rowferry_worker.monitoring import metrics
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.scrape import fetch, has_said_all, scrape, served_port, sum_of, values_by


def test_a_worker_counts_what_it_does(migration: Migration) -> None:
    migration.fill(30)
    migration.add_row(31, "image/nothing.png")
    migration.enqueue(batch_size=10)
    with migration.workers(1, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: has_said_all(port, batches=4))
        samples = scrape(port)
        assert values_by(samples, "rowferry_entries_total", "outcome") == {"migrated": 30, "missing": 1}
        assert values_by(samples, "rowferry_attempts_total", "verdict") == {"DONE": 3, "ERROR": 1}
        assert sum_of(samples, "rowferry_object_seconds_count") == 31
        assert sum_of(samples, "rowferry_requests_total", operation="CopyObject", result="ok") >= 30
        assert sum_of(samples, "rowferry_row_update_seconds_count") == 4
        assert sum_of(samples, "rowferry_objects_in_flight") == 0
        assert sum_of(samples, "process_cpu_seconds_total") > 0
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_worker_is_alive_and_ready_while_the_database_takes_its_heartbeat(migration: Migration) -> None:
    with migration.workers(1, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        assert fetch(port, "/healthz") == (200, "ok\n")
        wait_for(lambda: fetch(port, "/readyz")[0] == 200)
        assert fetch(port, "/elsewhere")[0] == 404


HANGS = """
import sys
from rowferry_cli import main
from rowferry_worker.state import WorkerState

WorkerState.is_progressing = lambda *_: False
sys.argv = ["rowferry", "worker", "--processes=1", "--metrics-port=0"]
main()
"""


def test_a_worker_whose_slots_hang_is_not_alive(migration: Migration, tmp_path: Path) -> None:
    """Kubernetes and Docker ask no other way: systemd's watchdog and the supervisor notice it by themselves."""
    path = tmp_path / "log"
    with path.open("w") as log, subprocess.Popen([sys.executable, "-c", HANGS], stderr=log) as worker:
        try:
            wait_for(lambda: '"worker started"' in path.read_text())
            port = next(line["port"] for line in map(json.loads, path.read_text().splitlines()) if "port" in line)
            assert fetch(port, "/healthz") == (503, "no progress\n")
            assert fetch(port, "/metrics")[0] == 200
        finally:
            worker.terminate()
    assert worker.returncode == 0


def test_the_metrics_are_off_unless_a_port_is_given(migration: Migration) -> None:
    with migration.workers(1) as (worker,):
        wait_for(lambda: "worker started" in worker.messages())
        assert "serving metrics" not in worker.messages()


def test_a_taken_port_ends_the_worker_with_one_sentence(migration: Migration) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        ended = migration.run("worker", "--until-empty", "--metrics-port", port)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"rowferry: Port {port} on 127.0.0.1 is already in use")
    assert "Traceback" not in ended.stderr


def test_the_endpoint_listens_on_an_ipv6_address_as_well() -> None:
    registry = CollectorRegistry()
    try:
        endpoint = Endpoint("::1", 0, registry, lambda: False)
    except UsageError as mistake:
        pytest.skip(f"no IPv6 here: {mistake}")
    with endpoint:
        assert fetch(endpoint.port, "/readyz", host="::1") == (503, "not ready\n")


def test_a_head_request_gets_the_headers_alone_and_an_unknown_host_is_a_mistake() -> None:
    with (
        Endpoint("127.0.0.1", 0, CollectorRegistry(), lambda: True) as endpoint,
        closing(socket.create_connection(("127.0.0.1", endpoint.port), timeout=60)) as connection,
    ):
        connection.sendall(b"HEAD /healthz HTTP/1.0\r\n\r\n")
        response = connection.makefile("rb").read()
    assert response.startswith(b"HTTP/1.0 200 ")
    assert b"\r\nContent-Length: 3\r\n" in response
    assert response.endswith(b"\r\n\r\n")
    with pytest.raises(UsageError, match=r"Cannot listen on port 0 of 192\.0\.2\.1"):
        Endpoint("192.0.2.1", 0, CollectorRegistry(), lambda: True)


def test_a_registry_that_fails_fails_one_scrape_and_not_the_endpoint(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("broken", "Raises when it is read.", registry=registry)

    def explode() -> float:
        raise RuntimeError("boom")

    gauge.set_function(explode)
    with Endpoint("127.0.0.1", 0, registry, lambda: True) as endpoint:
        assert fetch(endpoint.port, "/metrics")[0] == 500
        assert fetch(endpoint.port, "/healthz")[0] == 200
    assert "the metrics could not be read" in caplog.text


RESET, END = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
"""SO_LINGER: how a connection is closed."""


@pytest.mark.parametrize(
    ("request_line", "close"),
    [(b"GET /healthz HTTP/1.0\r\n\r\n", RESET), (b"GET /healthz HTTP/1.0\r\n\r\n", END), (b"GET /heal", RESET)],
    ids=["response reset", "response not read", "request cut off"],
)
def test_a_client_that_hangs_up_is_no_error(
    request_line: bytes, close: bytes, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before, hung_up = set(threading.enumerate()), threading.Event()
    with Endpoint("127.0.0.1", 0, CollectorRegistry(), lambda: True, lambda: hung_up.wait(60)) as endpoint:
        with closing(socket.create_connection(("127.0.0.1", endpoint.port), timeout=60)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, close)
            connection.sendall(request_line)
        hung_up.set()
        assert fetch(endpoint.port, "/readyz") == (200, "ready\n")
    wait_for(lambda: before >= set(threading.enumerate()))
    assert capfd.readouterr().err == ""
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_what_was_done_is_counted_by_queue(migration: Migration) -> None:
    """An object that is checked or left alone is not one that was copied, whatever the outcome is called."""
    migration.given(10)
    queues = [f"--queue={queue}" for queue in ("migrate", "verify", "revert")]
    with migration.workers(1, *queues, "--metrics-port=0") as (worker,):
        port = served_port(worker)
        for queue in ("verify", "revert"):
            migration.wait_until_done()
            migration.enqueue(queue=queue)
        migration.wait_until_done()
        wait_for(lambda: has_said_all(port, batches=3))
        samples = scrape(port)
    assert values_by(samples, "rowferry_entries_total", "queue") == {"migrate": 10, "verify": 10, "revert": 10}
    assert sum_of(samples, "rowferry_entries_total", queue="verify", outcome="kept") == 10
    assert sum_of(samples, "rowferry_entries_total", queue="revert", outcome="migrated") == 10
    assert values_by(samples, "rowferry_object_seconds_count", "queue") == {"migrate": 10, "verify": 10, "revert": 10}
    assert values_by(samples, "rowferry_row_update_seconds_count", "queue") == {"migrate": 1, "revert": 1}
    assert values_by(samples, "rowferry_batch_seconds_count", "queue") == {"migrate": 1, "verify": 1, "revert": 1}


def test_a_process_names_so_many_migrations_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_named", set[tuple[str, str]]())
    first = [metrics.name_work(f"migration-{number}", "migrate") for number in range(metrics.MOST_WORK)]
    assert first == [(f"migration-{number}", "migrate") for number in range(metrics.MOST_WORK)]
    assert metrics.name_work("one-more", "migrate") == ("others", "others")
    assert metrics.name_work("migration-3", "migrate") == ("migration-3", "migrate")
