"""A server process: started, awaited, and stopped even when this process is killed."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Self

from rowferry.errors import RowferryError, UsageError

START_DEADLINE = timedelta(seconds=120)
START_TRIES = 3
"""A free port may be gone by the time the server asks for it; then another one is tried."""
POLL_INTERVAL = timedelta(milliseconds=10)
LAST_WORDS_LINES = 15
"""How much of a failed server's own log its error quotes."""

GUARD_SCRIPT = """
read -r never
kill -s "$2" "$1" || exit 0
tries=100
while kill -0 "$1" && [ "$tries" -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
kill -s KILL "$1"
[ -z "$3" ] || rm -rf "$3"
"""
"""Waits until the pipe on its standard input closes, which the kernel does however this process dies, then stops the
server (`$1`, by signal `$2`) and removes its temporary folder (`$3`, or empty)."""


class ServerFailed(RowferryError):
    """A server that rowferry started itself ended early or did not become ready in time."""


class OwnServer(ABC):
    """A private server on a free port of 127.0.0.1: use it as a context manager, or call `start` and `close`."""

    name: ClassVar[str]
    parent: ClassVar[Path | None] = None
    """Where it makes its folder; None: where temporary files are."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` keeps what the server stores for the next start; None means a temporary one."""
        self.port = 0
        """Chosen at the first start and kept from then on."""
        self._folder = folder and folder.absolute()
        self._is_temporary = folder is None
        self._process: ServerProcess | None = None

    @property
    def folder(self) -> Path:
        """Return the folder of what it stores, its log and its sockets, which is made when it is first asked for."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"rowferry-{self.name}-", dir=self.parent))
        return self._folder

    def start(self) -> None:
        """Start the server, where it was on the same port, and return when it answers.

        Raises ServerFailed with the server's last words, and leaves nothing running then.
        """
        for tries_left in reversed(range(1 if self.port else START_TRIES)):
            try:
                port = self.port or self.choose_port()
                self.start_on(port)
            except BaseException as error:
                self.close()
                if not tries_left or not isinstance(error, ServerFailed):
                    raise
            else:
                self.port = port
                return

    @abstractmethod
    def start_on(self, port: int) -> None:
        """Start the server on this port. Raises ServerFailed when it does not answer."""

    def choose_port(self) -> int:
        """Return a port that is free now."""
        return find_free_port()

    def stop(self, stop_signal: signal.Signals | None = None) -> None:
        """Stop the server, in order unless there is another signal; nothing happens when it is stopped."""
        if self._process is not None:
            self._process.stop(stop_signal or self.stop_signal)
            self._process = None

    def restart(self, stop_signal: signal.Signals | None = None) -> None:
        """Stop and start on the same port with what it has stored."""
        self.stop(stop_signal)
        self.start()

    def close(self) -> None:
        """Stop the server, and remove the folder unless it was given by the caller."""
        self.stop()
        if self._is_temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server and remove what was temporary."""
        self.close()

    @property
    def pid(self) -> int:
        """Return the process id of the running server; RuntimeError when it is stopped."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid


def find_free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free now; another process may take it first."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def choose_account() -> pwd.struct_passwd | None:
    """Return the account a server must run as: None for the present one, `nobody` when that is root.

    PostgreSQL refuses to run as root. Raises UsageError when root finds no such account.
    """
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise UsageError("There is no account `nobody` to run PostgreSQL as; run this as an ordinary user.") from None


def post_guard(pid: int, death_signal: signal.Signals, folder_to_remove: Path | None) -> subprocess.Popen[bytes]:
    """Start the guard of one server; it acts when its standard input closes, however this process ends."""
    arguments = [str(pid), death_signal.name.removeprefix("SIG"), str(folder_to_remove or "")]
    return subprocess.Popen(
        ["/bin/sh", "-c", GUARD_SCRIPT, "guard", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class ServerProcess:
    """One running server and its guard, a shell that stops the server when this process dies before it could."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        account: pwd.struct_passwd | None = None,
        environment: Mapping[str, str] | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
        temporary: bool = False,
    ) -> None:
        """Start `command` in `folder`, its output in `folder/server.log`; the guard sends `death_signal`.

        `account` is the user it runs as, None for the current one. With `temporary`, the guard removes the folder too.
        """
        self.log_path = folder / "server.log"
        self._name = Path(command[0]).name
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server in order.
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )
        self.pid = self._process.pid
        try:
            self._guard = post_guard(self.pid, death_signal, folder if temporary else None)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def wait_until(self, is_ready: Callable[[], bool], *, deadline: timedelta) -> None:
        """Return once `is_ready()`; raise ServerFailed, with the end of the server's log, if it ends or is too slow."""
        give_up_at = time.monotonic() + deadline.total_seconds()
        while self._process.poll() is None and time.monotonic() < give_up_at:
            if is_ready() and self._process.poll() is None:
                return
            time.sleep(POLL_INTERVAL.total_seconds())
        status = self._process.poll()
        state = "was not ready in time" if status is None else f"ended with status {status}"
        raise ServerFailed(f"{self._name} {state}:\n{self.read_last_words()}")

    def wait(self, deadline: timedelta) -> int | None:
        """Return the exit status once the process has ended by itself; None when it still runs at the deadline."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(deadline.total_seconds())
        return None

    def read_last_words(self) -> str:
        """Return the last lines that the server wrote."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-LAST_WORDS_LINES:])

    def stop(
        self, stop_signal: signal.Signals = signal.SIGTERM, *, deadline: timedelta = timedelta(seconds=60)
    ) -> None:
        """Send the signal, wait, and kill the server if it is still there at the deadline. May be called again."""
        if self._process.poll() is None:
            self._process.send_signal(stop_signal)
            try:
                self._process.wait(deadline.total_seconds())
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._guard.kill()
        self._guard.communicate()
