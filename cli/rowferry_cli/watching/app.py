"""The loop of `rowferry watch`: poll, draw, read keys, until q."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from types import FrameType

from rich.console import Console
from rich.live import Live

from rowferry.db.connection import Connection, name_database
from rowferry_cli.watching.keys import HELP, HELP_WITH_QUEUES, KeyHandler, open_keyboard
from rowferry_cli.watching.poller import Poller, State
from rowferry_cli.watching.snapshot import read_snapshot
from rowferry_cli.watching.view import draw_view

REDRAW_INTERVAL = timedelta(seconds=0.1)
"""How soon a new snapshot shows; a key shows at once."""
SILENT_AFTER = timedelta(seconds=10)
"""How late a snapshot may be before the database is reported as not answering."""

Show = Callable[[State, str | None, list[str]], None]
"""Shows a state and in it one queue, with these last lines."""


def watch_once(connection: Connection, migration: str, queue: str | None, console: Console) -> None:
    """Print the view once, at its full height."""
    state = State(read_snapshot(connection, migration))
    console.print(draw_view(state, queue, database=name_database(), now=_now()))


def watch(migration: str, queue: str | None, interval: timedelta, console: Console) -> None:
    """Show the view, at first of this queue, until q is pressed or SIGINT, SIGTERM or SIGHUP arrives.

    Then restore the terminal.
    """
    poller = Poller(migration, interval)
    with _open_screen(console) as show, open_keyboard() as read_keys, _stop_signals() as stopped:
        poller.start()
        handler = KeyHandler(queue=queue)
        while not (handler.is_over or stopped.is_set()):
            state = _report_silence(poller.state)
            last_line = handler.question or handler.reply or _choose_help(state)
            show(state, handler.queue, [line for line in (state.notice, last_line) if line])
            for key in read_keys(REDRAW_INTERVAL):
                handler = handler.press(key, state.snapshot)
                if handler.action is not None:
                    poller.request(handler.action, handler.queue)


@contextmanager
def _open_screen(console: Console) -> Generator[Show]:
    """Yield what shows a state: on the whole screen of a terminal, or below the last one elsewhere."""
    database = name_database()
    shown: list[object] = []
    if not console.is_terminal or console.is_dumb_terminal:

        def append(state: State, queue: str | None, _footer: list[str]) -> None:
            if state.snapshot is not None and shown != [state]:
                shown[:] = [state]
                console.print(draw_view(state, queue, database=database, now=_now()), "")

        yield append
        return

    with Live(console=console, screen=True, auto_refresh=False) as live:

        def redraw(state: State, queue: str | None, footer: list[str]) -> None:
            """Redraw only if something changed: the state, the time in seconds, the size of the window."""
            if shown != [state, queue, footer, _now(), console.size]:
                shown[:] = [state, queue, footer, _now(), console.size]
                height = console.size.height
                view = draw_view(state, queue, database=database, now=_now(), height=height, footer=footer)
                live.update(view, refresh=True)

        yield redraw


@contextmanager
def _stop_signals() -> Generator[Event]:
    """Yield an event that a signal sets, so that the terminal is always restored."""
    stopped = Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report_silence(state: State) -> State:
    """Return the state, with a message if the database neither answers nor refuses."""
    late = time.monotonic() - state.next_at
    if state.snapshot is None or state.trouble or late < SILENT_AFTER.total_seconds():
        return state
    return replace(state, trouble="The database does not answer.")


def _choose_help(state: State) -> str:
    return HELP_WITH_QUEUES if state.snapshot is not None and len(state.snapshot.queues) > 1 else HELP


def _now() -> datetime:
    return datetime.now(UTC).astimezone().replace(microsecond=0)
