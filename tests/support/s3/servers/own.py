"""What the servers have in common: programs that were installed for them, low ports, and several processes each."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from rowferry_lab.servers.s3_servers import START_DEADLINE, S3Server
from rowferry_lab.servers.server_process import ServerFailed, ServerProcess
from support.checkout import ROOT
from support.processes.processes import wait_for
from support.s3.buckets import connect_s3

TOOLS = ROOT / ".tools"
LOWEST_PORT, FIRST_EPHEMERAL_PORT = 11_000, 32_768
"""Outgoing connections take theirs from 32768 on: a port there may be gone before a server asks for it."""
TRIES = 200
END_DEADLINE = timedelta(seconds=20)
"""How long a process may take to end in order before it is killed."""


class NotInstalled(Exception):
    """A server cannot be started on this machine; the message says what is missing."""


@contextmanager
def running(make: Callable[[], S3Server]) -> Iterator[S3Server]:
    """Yield the server that is made, running; the test is skipped where it cannot be started on this machine."""
    try:
        server = make()
    except NotInstalled as reason:
        pytest.skip(str(reason))
    with server:
        yield server


def find_program(name: str, *, advice: str) -> Path:
    """Return a program that the tools have installed, or the one on PATH. Raises NotInstalled with the advice."""
    for built in (TOOLS / "bin" / name, TOOLS / "wheels" / "bin" / name):
        if built.exists():
            return built
    on_path = shutil.which(name, path="/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin")
    if on_path is None:
        raise NotInstalled(f"{name} is not here: {advice}")
    return Path(on_path)


def find_low_port() -> int:
    """Return a TCP port of 127.0.0.1 below the ephemeral ones that is free now."""
    for _ in range(TRIES):
        port = random.randrange(LOWEST_PORT, FIRST_EPHEMERAL_PORT)
        with suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise NotInstalled(f"there is no free port between {LOWEST_PORT} and {FIRST_EPHEMERAL_PORT}")


def run(*command: str | Path, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command of a server's set-up and return what it prints. Raises ServerFailed, with its last words."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_DEADLINE.total_seconds(),
        check=False,
    )
    if done.returncode:
        raise ServerFailed(f"{Path(command[0]).name} ended with status {done.returncode}:\n{done.stderr[-1000:]}")
    return done.stdout


class OneProgram(S3Server):
    """A server of one process, on a low port. Raises NotInstalled, when it is made, where its program is not here."""

    program: ClassVar[str]
    advice: ClassVar[str] = "it is built where `go` is installed"

    def __init__(self) -> None:
        super().__init__()
        self.path = str(self.find())

    def find(self) -> Path:
        return find_program(self.program, advice=self.advice)

    def choose_port(self) -> int:
        return find_low_port()

    def start(self) -> None:
        super().start()
        wait_for(lambda: lists_buckets(self), deadline=START_DEADLINE)


def lists_buckets(server: S3Server) -> bool:
    """Return whether a server that answers is ready to work: some begin by refusing everything."""
    with closing(connect_s3(server)) as client, suppress(BotoCoreError, ClientError):
        client.list_buckets()
        return True
    return False


class Programs:
    """The processes of a server that is made of several, which end in the reverse order of their start."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        """`folder`: where they run, and leave their words in `server.log`."""
        self.folder = folder
        self._environment = {**os.environ, **(environment or {})}
        self._until = ExitStack()

    def start(
        self, *command: str | Path, until: Callable[[], bool] | None = None, end: signal.Signals = signal.SIGTERM
    ) -> None:
        """Start one more and wait `until` it is ready; `end` is the signal that will end it."""
        process = ServerProcess(
            list(map(str, command)), folder=self.folder, environment=self._environment, death_signal=end, temporary=True
        )
        self._until.callback(process.stop, end, deadline=END_DEADLINE)
        process.wait_until(until or (lambda: True), deadline=START_DEADLINE)

    def run(self, *command: str | Path) -> str:
        """Run a command to its end and return what it prints. Raises ServerFailed, with its words."""
        return run(*command, folder=self.folder, environment=self._environment)

    def close(self) -> None:
        self._until.close()


class ManyPrograms(S3Server):
    """A server of several processes, on low ports."""

    _programs: Programs | None = None

    def start_all(self, programs: Programs, port: int) -> None:
        """Start every process; the one on this port speaks S3."""
        raise NotImplementedError

    def start(self) -> None:
        folder, port = Path(tempfile.mkdtemp(prefix=f"rowferry-{self.name}-")), find_low_port()
        self._folder, self._programs = folder, Programs(folder)
        try:
            self.start_all(self._programs, port)
        except BaseException:
            self.close()
            raise
        self.endpoint_url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        if self._programs is not None:
            self._programs.close()
            self._programs = None
        super().close()
