"""Inspecting with a user's function, which may never end: in a process that is killed then."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from threading import Thread
from typing import Any

from rowferry.errors import RowferryError
from rowferry.queue_spec import describe_fault
from rowferry_queues.inspect.content import ContentFault, inspect
from rowferry_queues.inspect.spec import InspectSettings
from rowferry_worker.compute import compute

START_SECONDS = 60.0
"""How long a process may take to start, and to import what it needs, before it asks for bytes."""
_turns = asyncio.Semaphore(4)
"""How many compute at once: there may be a worker process for each core beside this one."""


async def inspect_in_process(chunks: Iterator[bytes], settings: InspectSettings, key: str) -> dict[str, Any]:
    """Return what `inspect` returns, computed by another process. Raises what it raises, and errors of the chunks.

    The process asks for the chunks, which may block; the time that it waits for them does not count. Raises
    ContentFault where it computes for longer than `function_seconds`, or ends: whatever it does, it is killed.
    """
    async with _turns:
        process = idle.pop() if idle else await compute(ComputingProcess)
        try:
            answer = await compute(process.call, chunks, settings, key)
        except BaseException:
            process.kill()
            raise
        idle.append(process)
    if isinstance(answer, Exception):
        raise answer
    return answer


class ComputingProcess:
    """A process that inspects objects, one at a time; it ends with this process."""

    def __init__(self) -> None:
        """Start it."""
        self._connection, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def call(self, chunks: Iterator[bytes], settings: InspectSettings, key: str) -> dict[str, Any] | RowferryError:
        """Return what `inspect` returns or raises. Raises as `inspect_in_process` does: kill it then. Blocks."""
        left = settings.function_seconds
        try:
            self._connection.send((settings, key))
            self._connection.poll(START_SECONDS)
            while True:
                asked = time.monotonic()
                if not self._connection.poll(max(0.0, left)):
                    words = f"the function did not end within {settings.function_seconds:g} s (function_seconds)"
                    raise ContentFault("FunctionTimedOut", words)
                left -= time.monotonic() - asked
                if (answer := self._connection.recv()) is not None:
                    return answer
                self._connection.send_bytes(next(chunks, b""))
        except RowferryError:
            raise
        except Exception as error:
            raise explain(error) from error

    def kill(self) -> None:
        """End it, whatever it does; from any thread."""
        self._process.kill()
        self._process.wait()


idle: list[ComputingProcess] = []
"""Processes that wait for calls; event-loop thread only."""


def explain(error: Exception) -> RowferryError:
    """Return why an object has no facts: an error of ours, or that its process has ended, or a value cannot be sent."""
    words = f"the function failed with {describe_fault(error)}"
    return error if isinstance(error, RowferryError) else ContentFault("FunctionFailed", words)


def main() -> None:
    """Be such a process, until its parent asks no more."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they are for the worker, which may finish its batches first
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    with Connection(int(sys.argv[1])) as connection, suppress(EOFError, ConnectionError):
        while True:
            settings, key = connection.recv()
            connection.send_bytes(_answer(_ask(connection), settings, key))


def _answer(chunks: Iterator[bytes], settings: InspectSettings, key: str) -> bytes:
    """Return, pickled, what `inspect` returns or raises."""
    try:
        return pickle.dumps(inspect(chunks, settings, key))
    except Exception as error:  # noqa: BLE001 - a value cannot be pickled, or the object fails
        return pickle.dumps(explain(error))


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
