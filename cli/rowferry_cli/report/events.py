"""Builds what happened on the way: pauses, requeues, lost workers. Pure."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

from rowferry_cli.report.facts import Event
from rowferry_cli.report.hide import cut
from rowferry_cli.report.model import Cell, Column, Table
from rowferry_cli.report.wording import write_moment

Pause = tuple[datetime, datetime | None]
"""From when until when; None: it goes on."""
MOST_ROWS = 30


def find_pauses(events: Sequence[Event], queue: str) -> list[Pause]:
    """Return when the migration, or this queue of it, was paused; a resume without its pause is left out."""
    ordered = sorted(events, key=lambda one: one.at)
    return [pause for name in (None, queue) for pause in _pair([one for one in ordered if one.queue == name])]


def _pair(events: Sequence[Event]) -> Iterator[Pause]:
    """Yield the pauses of events in order; those of one transaction, at the same time, follow from the state before."""
    began_at: datetime | None = None
    for at, same in groupby(events, key=lambda one: one.at):
        kinds = {one.kind for one in same}
        for kind in ("paused", "resumed") if began_at is None else ("resumed", "paused"):
            if kind == "paused" and kind in kinds and began_at is None:
                began_at = at
            elif kind == "resumed" and kind in kinds and began_at is not None:
                yield began_at, at
                began_at = None
    if began_at is not None:
        yield began_at, None


def tabulate_events(events: Sequence[Event], clean: Callable[[str], str]) -> Table | None:
    """Return a row an event, the newest first; None where nothing happened."""
    if not events:
        return None
    rows: list[list[Cell]] = [
        [write_moment(event.at), event.kind.replace("_", " "), cut(clean(event.text))] for event in events[:MOST_ROWS]
    ]
    columns = [Column("When"), Column("What"), Column("Details")]
    more = f"{len(events) - MOST_ROWS} earlier ones or more." if len(events) > MOST_ROWS else ""
    return Table("Pauses, requeues and lost workers, the newest first", columns, rows, more)
