"""The loop of `rowferry watch`: poll, draw, read keys, until q."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from types import FrameType

from rich.console import Console, ConsoleDimensions
from rich.live import Live

from rowferry.db.connection import Connection, name_database
from rowferry_cli.watch.keys import KeyHandler, list_keys, open_keyboard
from rowferry_cli.watch.poller import Poller, State
from rowferry_cli.watch.snapshot import read_snapshot
from rowferry_cli.watch.view import ENDLESS, draw_view

REDRAW_INTERVAL = timedelta(seconds=0.1)
"""How soon a new snapshot shows; a key shows at once."""
SILENT_AFTER = timedelta(seconds=10)
"""How late a snapshot may be before the database is reported as not answering."""

Show = Callable[[State, KeyHandler], None]
"""Shows a state, as the keys have chosen."""


def watch_once(connection: Connection, migration: str, queue: str | None, console: Console) -> None:
    """Print the view once, at its full height."""
    state = State(read_snapshot(connection, migration))
    console.print(draw_view(state, queue, database=name_database(), now=_now(), size=_unroll(console)))


def watch(migration: str, queue: str | None, interval: timedelta, console: Console) -> None:
    """Show the view, at first of this queue, until q is pressed or SIGINT, SIGTERM or SIGHUP arrives.

    Then restore the terminal.
    """
    poller = Poller(migration, interval)
    with _open_screen(console) as show, open_keyboard() as read_keys, _stop_signals() as stopped:
        poller.start()
        handler = KeyHandler(queue=queue)
        while not (handler.is_over or stopped.is_set()):
            if poller.state.failure is not None:
                raise poller.state.failure
            state = _choose_state(poller.state)
            show(state, handler)
            for key in read_keys(REDRAW_INTERVAL):
                handler = handler.press(key, state.snapshot)
                if handler.action is not None:
                    poller.request(handler.action)


def _choose_state(state: State) -> State:
    """Return the state, with a message if the database neither answers nor refuses."""
    if state.snapshot is None:
        return state
    is_late = time.monotonic() - state.next_at >= SILENT_AFTER.total_seconds()
    return replace(state, trouble="The database does not answer.") if is_late and not state.trouble else state


@contextmanager
def _open_screen(console: Console) -> Generator[Show]:
    """Yield what shows a state on the whole screen of a terminal.

    It does so only if something has changed: the state, the time in seconds, the size of the window.
    """
    database = name_database()
    shown: list[object] = []
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def redraw(state: State, handler: KeyHandler) -> None:
            now, size, footer = _now(), console.size, _choose_footer(state, console.size.width)
            if shown != [state, handler, now, size, footer]:
                shown[:] = [state, handler, now, size, footer]
                view = draw_view(
                    state,
                    handler.queue,
                    database=database,
                    now=now,
                    size=size,
                    footer=footer,
                    shows_help=handler.shows_help,
                )
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


def _choose_footer(state: State, width: int) -> list[str]:
    """Return the last lines: what became of the last action, and the keys."""
    has_queues = state.snapshot is not None and len(state.snapshot.queues) > 1
    return [line for line in (state.notice, list_keys(width, has_queues=has_queues)) if line]


def _unroll(console: Console) -> ConsoleDimensions:
    """Return the size of a view that is as long as it needs to be."""
    return ConsoleDimensions(console.size.width, ENDLESS)


def _now() -> datetime:
    return datetime.now(UTC).astimezone().replace(microsecond=0)
