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
from rowferry_cli.watch.keys import KeyHandler, list_keys, open_keyboard
from rowferry_cli.watch.poller import Focus, Poller, State
from rowferry_cli.watch.reading import read_snapshot
from rowferry_cli.watch.view import draw_view

REDRAW_INTERVAL = timedelta(seconds=0.1)
"""How soon a new snapshot shows; a key shows at once."""
SILENT_AFTER = timedelta(seconds=10)
"""How late a snapshot may be before the database is reported as not answering."""

Show = Callable[[State, KeyHandler], None]
"""Shows a state, as the keys have chosen."""


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
        handler = KeyHandler(queue=queue, migration=migration)
        while not (handler.is_over or stopped.is_set()):
            chosen = handler.migration or migration
            if poller.state.failure is not None:
                raise poller.state.failure
            state = _choose_state(poller.state, chosen)
            poller.look_at(Focus(chosen, _choose_failures(handler, state)))
            show(state, handler)
            for key in read_keys(REDRAW_INTERVAL):
                handler = handler.press(key, state.snapshot)
                if handler.action is not None:
                    poller.request(handler.action, chosen, handler.queue)
                chosen = handler.migration or migration
                state = _choose_state(state, chosen)


def _choose_state(state: State, migration: str) -> State:
    """Return the state without its snapshot if that is of another migration, which was looked at before.

    So no key means the migration that is not on the screen any more.
    """
    if state.snapshot is not None and state.snapshot.migration != migration:
        return replace(state, snapshot=None)
    return _report_silence(state)


def _choose_failures(handler: KeyHandler, state: State) -> str | None:
    """Return the queue whose failed entries are listed, if they are."""
    looked_at = state.snapshot.find_queue(handler.queue) if state.snapshot else None
    return looked_at.name if looked_at and handler.page == "failures" else None


@contextmanager
def _open_screen(console: Console) -> Generator[Show]:
    """Yield what shows a state: on the whole screen of a terminal, or below the last one elsewhere."""
    database = name_database()
    shown: list[object] = []
    if not console.is_terminal or console.is_dumb_terminal:

        def append(state: State, handler: KeyHandler) -> None:
            if state.snapshot is not None and shown != [state]:
                shown[:] = [state]
                console.print(draw_view(state, handler.queue, database=database, now=_now()), "")

        yield append
        return

    with Live(console=console, screen=True, auto_refresh=False) as live:

        def redraw(state: State, handler: KeyHandler) -> None:
            """Redraw only if something changed: the state, the time in seconds, the size of the window."""
            footer = _choose_footer(state, handler, console.size.width)
            look = [state, handler.queue, handler.page, footer, _now(), console.size]
            if shown != look:
                shown[:] = look
                view = draw_view(
                    state,
                    handler.queue,
                    database=database,
                    now=_now(),
                    size=console.size,
                    footer=footer,
                    page=handler.page,
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


def _report_silence(state: State) -> State:
    """Return the state, with a message if the database neither answers nor refuses."""
    late = time.monotonic() - state.next_at
    if state.snapshot is None or state.trouble or late < SILENT_AFTER.total_seconds():
        return state
    return replace(state, trouble="The database does not answer.")


def _choose_footer(state: State, handler: KeyHandler, width: int) -> list[str]:
    """Return the last lines: what became of the last action, and a question, a reply or the keys."""
    snapshot = state.snapshot
    keys = list_keys(
        width,
        has_queues=snapshot is not None and len(snapshot.queues) > 1,
        has_migrations=snapshot is not None and len(snapshot.migrations) > 1,
    )
    return [line for line in (state.notice, handler.question or handler.reply or keys) if line]


def _now() -> datetime:
    return datetime.now(UTC).astimezone().replace(microsecond=0)
