"""The thread on which all requests of the hot path travel: one uvloop a process, shared by all clients."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvloop

from rowferry.per_process import once_a_process

NAME = "rowferry-wire"
"""The thread's name, also in `top -H`."""


class LoopThread:
    """An event loop that runs for as long as the process does, on a daemon thread of its own."""

    def __init__(self) -> None:
        """Start the thread."""
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):  # Linux only; Python itself tells the system no names before 3.14
            Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(NAME, encoding="ascii")
        self.loop.run_forever()

    def run(self, task: Callable[[], object]) -> None:
        """Run a short `task` on the thread: at once when called from there, soon when called from elsewhere."""
        if threading.get_ident() == self._thread.ident:
            task()
        else:
            self.loop.call_soon_threadsafe(task)

    def run_later(self, seconds: float, task: Callable[[], object]) -> None:
        """Run `task` on the thread after so many seconds."""
        self.loop.call_soon_threadsafe(self.loop.call_later, seconds, task)


share_loop = once_a_process(LoopThread)
"""Returns this process's event loop."""
