"""`python -m rowferry_cli.container_health`: the health check of the container image, for every command it may run."""

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from rowferry_cli import cli

FIRST_PROCESS = Path("/proc/1/cmdline")
TIMEOUT_SECONDS = 3.0
THIS_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on
SERVERS = {"worker": ("metrics_host", "metrics_port"), "exporter": ("host", "port")}
"""The commands that serve /healthz, with the parameters that say where."""


def main() -> int:
    """Print one line and return the exit status: 0 healthy, or nothing to ask; 1 unhealthy."""
    address = find_address(FIRST_PROCESS.read_text(errors="surrogateescape").split("\0"))
    if address is None:
        click.echo("This command has no health endpoint; it counts as healthy while it runs.")
        return 0
    answer = ask(*address)
    click.echo(answer)
    return 0 if " 200 " in answer else 1


def find_address(words: Sequence[str]) -> tuple[str, int] | None:
    """Return where the command line of a container's first process serves /healthz; None if it does not.

    It is read as rowferry itself reads it, environment variables included. A free port (0) cannot be known.
    """
    programs = [place for place, word in enumerate(words) if Path(word).name == "rowferry"]
    arguments = [word for word in words[programs[0] + 1 :] if word] if programs else []
    if not arguments or arguments[0] not in SERVERS:
        return None
    command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None
    chosen = command.make_context(arguments[0], arguments[1:], resilient_parsing=True).params
    host, port = (chosen[name] for name in SERVERS[arguments[0]])
    return (THIS_MACHINE.get(str(host), str(host)), port) if port else None


def ask(host: str, port: int) -> str:
    """Return the first line of the response of /healthz, or why there is none."""
    request = f"GET /healthz HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
    with suppress(UnicodeDecodeError):
        try:
            with socket.create_connection((host, port), TIMEOUT_SECONDS) as connection:
                connection.sendall(request)
                return connection.makefile("rb").readline(200).decode("ascii").strip() or "An empty response."
        except OSError as error:
            return f"/healthz on port {port} of {host} does not answer: {error}."
    return "The response is not HTTP."


if __name__ == "__main__":
    sys.exit(main())
