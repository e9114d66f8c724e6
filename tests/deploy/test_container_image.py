"""The health check of the image, without an engine; `make test-image` builds and runs the image."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
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


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_answer_decides(
    status: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/healthz"
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        first_process = tmp_path / "cmdline"
        first_process.write_text("\0".join([*PROGRAM, "exporter", f"--port={server.server_port}", ""]))
        monkeypatch.setattr("rowferry_cli.container_health.FIRST_PROCESS", first_process)
        assert main() == code
        server.shutdown()
    assert str(status) in capsys.readouterr().out
    assert main() == 1, "it is gone"
    assert "does not answer" in capsys.readouterr().out


def test_silence_and_noise_are_unhealthy() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.RequestHandlerClass = lambda request, *_: request.sendall(b"\xff\xfe\n")  # type: ignore[assignment]
        Thread(target=server.serve_forever, daemon=True).start()
        assert ask("127.0.0.1", server.server_port) == "The response is not HTTP."
        server.RequestHandlerClass = lambda request, *_: request.recv(100)  # type: ignore[assignment]
        assert ask("127.0.0.1", server.server_port) == "An empty response."
        server.shutdown()
