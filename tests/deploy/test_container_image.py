"""The health check of the image, without an engine; `make test-image` builds and runs the image."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from socket import socket
from threading import Thread

import pytest

from rowferry_cli.container_health import ask, find_address, main

PROGRAM = ("/opt/rowferry/bin/python", "/opt/rowferry/bin/rowferry")


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["worker", "--metrics-host", "0.0.0.0", "--metrics-port", "9464"], ("127.0.0.1", 9464)),
        (["worker", "--metrics-host=::", "--metrics-port=9000", "--processes=1"], ("::1", 9000)),
        (["worker", "--metrics-port", "9464"], ("127.0.0.1", 9464)),
        (["worker", "--metrics-host=10.1.2.3", "--metrics-port=9464"], ("10.1.2.3", 9464)),
        (["worker"], None),
        (["worker", "--metrics-port", "0"], None),
        (["worker", "--metrics-port", "nonsense"], None),
        (["exporter"], ("127.0.0.1", 9465)),
        (["exporter", "--host", "0.0.0.0", "--port=9999"], ("127.0.0.1", 9999)),
        (["status"], None),
        (["enqueue", "--yes"], None),
        (["--version"], None),
        ([], None),
    ],
)
def test_the_health_check_asks_where_the_command_serves(words: list[str], address: tuple[str, int] | None) -> None:
    assert find_address([*PROGRAM, *words, ""]) == address
    assert find_address(["/sbin/docker-init", "--", "rowferry", *words, ""]) == address


def test_the_health_check_knows_the_variables_of_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_WORKER_METRICS_PORT", "9470")
    monkeypatch.setenv("ROWFERRY_EXPORTER_PORT", "9471")
    assert find_address([*PROGRAM, "worker"]) == ("127.0.0.1", 9470)
    assert find_address([*PROGRAM, "exporter"]) == ("127.0.0.1", 9471)


def test_the_health_check_asks_no_other_program() -> None:
    assert find_address(["sleep", "worker"]) is None
    assert find_address([""]) is None


@contextmanager
def serving(respond: Callable[[socket], object]) -> Iterator[int]:
    """Yield the port of a server that responds so."""
    with HTTPServer(("127.0.0.1", 0), lambda request, *_: respond(request)) as server:  # type: ignore[arg-type]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_answer_decides(
    status: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first_process = tmp_path / "cmdline"
    monkeypatch.setattr("rowferry_cli.container_health.FIRST_PROCESS", first_process)
    asked: list[bytes] = []

    def respond(request: socket) -> None:
        asked.append(request.recv(1000))
        request.sendall(b"HTTP/1.0 %d As Told\r\n\r\n" % status)

    with serving(respond) as port:
        first_process.write_text("\0".join([*PROGRAM, "exporter", f"--port={port}", ""]))
        assert main() == code
    assert asked[0].startswith(b"GET /healthz ")
    assert str(status) in capsys.readouterr().out
    assert main() == 1, "it is gone"
    assert "does not answer" in capsys.readouterr().out


def test_silence_and_noise_are_unhealthy() -> None:
    with serving(lambda request: request.sendall(b"\xff\xfe\n")) as port:
        assert ask("127.0.0.1", port) == "The response is not HTTP."
    with serving(lambda request: request.recv(100)) as port:
        assert ask("127.0.0.1", port) == "An empty response."
