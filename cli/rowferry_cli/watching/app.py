"""The session: keys in, frames out, until q."""

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
from rowferry_cli.watching.keys import Dialog, listen_to_keys, press
from rowferry_cli.watching.poller import Seen, Source
from rowferry_cli.watching.snapshot import read_picture
from rowferry_cli.watching.view import KEYS, draw_frame

LOOK_UP_EVERY = timedelta(seconds=0.1)
"""How soon a new picture shows; a key shows at once."""
SILENT_AFTER = timedelta(seconds=10)
"""How much later than expected a picture may be before the database is said to be silent."""

Show = Callable[[Seen, list[str]], None]
"""Shows a frame with these last lines."""


def watch_once(connection: Connection, migration: str, console: Console) -> None:
    """Print one frame, as long as it takes."""
    console.print(draw_frame(Seen(read_picture(connection, migration)), place=name_database(), moment=_now()))


def watch(migration: str, interval: timedelta, console: Console) -> None:
    """Show frames until q is pressed, or SIGINT, SIGTERM or SIGHUP comes; leave the terminal as it was."""
    source = Source(migration, interval)
    with _open_screen(console) as show, listen_to_keys() as read_keys, _stop_signals() as stopped:
        source.start()
        dialog = Dialog()
        while not (dialog.over or stopped.is_set()):
            seen = _tell_silence(source.seen)
            show(seen, [words for words in (seen.notice, dialog.question or dialog.reply or KEYS) if words])
            for key in read_keys(LOOK_UP_EVERY):
                dialog = press(dialog, key, seen.picture)
                if dialog.action is not None:
                    source.ask(dialog.action)


@contextmanager
def _open_screen(console: Console) -> Generator[Show]:
    """Yield what shows a frame: on the whole screen of a terminal that can be drawn on, line after line elsewhere."""
    place = name_database()
    shown: list[object] = []
    if not console.is_terminal or console.is_dumb_terminal:

        def append(seen: Seen, _footer: list[str]) -> None:
            if seen.picture is not None and shown != [seen]:
                shown[:] = [seen]
                console.print(draw_frame(seen, place=place, moment=_now()), "")

        yield append
        return

    with Live(console=console, screen=True, auto_refresh=False) as live:

        def redraw(seen: Seen, footer: list[str]) -> None:
            """Send a frame only when it has changed, a second has gone by, or the window has another size."""
            if shown != [seen, footer, _now(), console.size]:
                shown[:] = [seen, footer, _now(), console.size]
                frame = draw_frame(seen, place=place, moment=_now(), height=console.size.height, footer=footer)
                live.update(frame, refresh=True)

        yield redraw


@contextmanager
def _stop_signals() -> Generator[Event]:
    """Yield an event that a signal sets; a watch is not stopped halfway, which would leave the terminal in pieces."""
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


def _tell_silence(seen: Seen) -> Seen:
    """Return the same, with the trouble of a database that neither answers nor refuses."""
    late = time.monotonic() - seen.next_at
    if seen.picture is None or seen.trouble or late < SILENT_AFTER.total_seconds():
        return seen
    return replace(seen, trouble="The database does not answer.")


def _now() -> datetime:
    return datetime.now(UTC).astimezone().replace(microsecond=0)
