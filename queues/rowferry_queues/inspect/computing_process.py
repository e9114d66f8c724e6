"""Computing that may never end, such as that of a user's function: in a process that is killed then.

The process asks for the bytes that it computes with; the time that it waits for them does not count.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection, Pipe
from threading import Thread
from typing import Any, TypeVar

from rowferry_worker.compute import compute

T = TypeVar("T")
PROCESSES = 4
"""How many compute at once: there may be a worker process for each core beside this one."""
START_SECONDS = 60.0
"""How long a process may take to start, and to import what it needs, before it asks for bytes."""


async def compute_in_process(function: Callable[..., T], chunks: Iterator[bytes], *args: Any, seconds: float) -> T:
    """Return what a function of a module returns, computed by another process. Raises what it raises.

    It gets the chunks, which may block, and the arguments. Raises TimeoutError where it computes for longer than
    `seconds`, without its waits for chunks, and ProcessFailed where its process ends: whatever it does, it is killed.
    """
    async with _find_turns():
        process = idle.pop() if idle else await compute(ComputingProcess)
        try:
            returned, error = await compute(process.call, function, chunks, *args, seconds=seconds)
        except BaseException:
            process.kill()
            raise
        idle.append(process)
    if error is not None:
        raise error
    return returned


@cache
def _find_turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(PROCESSES)


class ProcessFailed(Exception):
    """A process has ended, or has sent what cannot be read."""


class ComputingProcess:
    """A process that calls functions, one at a time; it ends with this process."""

    def __init__(self) -> None:
        """Start it."""
        self._connection, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def call(
        self, function: Callable[..., Any], chunks: Iterator[bytes], *arguments: Any, seconds: float
    ) -> tuple[Any, Exception | None]:
        """Return what a function of a module returns, or the error that it raises; its arguments follow the chunks.

        Blocks. Raises TimeoutError where it computes for longer than `seconds` after it has asked for the first chunk,
        ProcessFailed where it ends the process, and errors of the chunks: after any of them, kill the process.
        """
        self._connection.send((function, arguments))
        answer = self._receive(START_SECONDS)
        while answer is None:
            self._connection.send_bytes(next(chunks, b""))
            asked = time.monotonic()
            answer = self._receive(seconds)
            seconds -= time.monotonic() - asked
        return answer

    def kill(self) -> None:
        """End it, whatever it does; from any thread."""
        self._process.kill()
        self._process.wait()

    def _receive(self, seconds: float) -> Any:
        try:
            if self._connection.poll(max(0.0, seconds)):
                return self._connection.recv()
        except Exception as error:
            raise ProcessFailed(f"{type(error).__name__}: {error}") from error
        raise TimeoutError


idle: list[ComputingProcess] = []
"""Processes that wait for calls; event-loop thread only."""


def main() -> None:
    """Be such a process, until its parent asks no more."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they are for the worker, which may finish its batches first
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    with Connection(int(sys.argv[1])) as connection, suppress(EOFError, ConnectionError):
        while True:
            function, arguments = connection.recv()
            try:
                connection.send((function(_ask(connection), *arguments), None))
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                connection.send((None, error))


def _ask(connection: Connection) -> Iterator[bytes]:
    """Yield bytes, each time that some are wanted; they end with none."""
    connection.send(None)
    while chunk := connection.recv_bytes():
        yield chunk
        connection.send(None)


def _end_with(parent: int) -> None:
    """End this process once its parent has ended, whatever is computed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main()
