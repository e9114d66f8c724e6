"""When objects were written, by the clocks of two servers that may differ, and which was last, as far as they tell."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

from rowferry.s3.responses import Response

Order = Literal["newer", "older", "unclear"]
"""Whether a legacy object was written after a production object, before it, or within what the clocks leave open."""

SAMPLES = 5
"""How often the clock of a server is read to measure it. Times come in whole seconds, so it is the change from one to
the next that tells."""
SAMPLE_EVERY = timedelta(seconds=0.25)
UNKNOWN_SKEW = timedelta(minutes=15).total_seconds()
"""How far the clock of a server may be off that does not tell its time.

Source: Amazon S3 User Guide, "Signing and authenticating REST requests": what was signed 15 minutes off is refused.
"""
UPLOAD_SPAN = timedelta(hours=1).total_seconds()
"""How long ago an upload by parts may have begun that has just ended: its `Last-Modified` may be that of its beginning.

Source: Amazon S3 User Guide, "Working with object metadata", Last-Modified; the bound is a choice.
"""


class Skew(NamedTuple):
    """By how many seconds the clock of the production server is ahead of the legacy server's, at least and at most."""

    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Return whether it was measured."""
        return self.high - self.low < UNKNOWN_SKEW


NO_SKEW = Skew(0.0, 0.0)
"""Both buckets are of one server."""


class ServerClock:
    """How far a server's clock is ahead of time.monotonic(), in seconds, at least and at most."""

    def __init__(self) -> None:
        """Know nothing."""
        self.low, self.high = -UNKNOWN_SKEW, UNKNOWN_SKEW
        self.is_known = False

    def note(self, told: datetime | None, sent: float, received: float) -> None:
        """Take in a time that a server has told to the second, asked and answered at these moments.

        What contradicts what is known makes it vaguer: a server may be several machines, each with its own clock.
        """
        if told is None:
            return
        low, high = told.timestamp() - received, told.timestamp() + 1 - sent
        if not self.is_known:
            self.low, self.high, self.is_known = low, high, True
        elif low <= self.high and self.low <= high:
            self.low, self.high = max(low, self.low), min(high, self.high)
        else:
            self.low, self.high = min(low, self.low), max(high, self.high)


def compare_clocks(legacy: ServerClock, production: ServerClock) -> Skew:
    """Return by how much the clocks of the two servers differ."""
    if not (legacy.is_known and production.is_known):
        return Skew(-UNKNOWN_SKEW, UNKNOWN_SKEW)
    return Skew(production.low - legacy.high, production.high - legacy.low)


def read_date(headers: Mapping[str, str], name: str = "date") -> datetime | None:
    """Return the time in a header, to the second; None where it has none that can be read."""
    try:
        told = parsedate_to_datetime(headers.get(name, ""))
    except (ValueError, TypeError, IndexError, OverflowError):  # by the version of Python
        return None
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)


def written_at(response: Response) -> datetime | None:
    """Return when an object was written, to the second, by the clock of its server; None where that is not told."""
    return read_date(response.headers, "last-modified")


def find_age(response: Response) -> float | None:
    """Return how many seconds ago an object was written, give or take one, by its server's clock; None: not told."""
    now, written = read_date(response.headers), written_at(response)
    return None if now is None or written is None else (now - written).total_seconds()


def put_in_order(legacy: Response, production: Response, skew: Skew, *, is_end_told: bool = True) -> Order:
    """Return whether the legacy object was written after the production object.

    Both times are of whole seconds, so what lies within one, and within what is not known of the clocks, is unclear.
    Without `is_end_told`, the time of an object that came by parts may be that of its beginning.
    """
    times = written_at(legacy), written_at(production)
    if times[0] is None or times[1] is None:
        return "unclear"
    first, second = times[0].timestamp(), times[1].timestamp()
    if first + skew.low >= second + 1 + _find_span(production, is_end_told=is_end_told):
        return "newer"
    return "older" if first + 1 + skew.high + _find_span(legacy, is_end_told=is_end_told) <= second else "unclear"


def _find_span(response: Response, *, is_end_told: bool) -> float:
    return UPLOAD_SPAN if not is_end_told and "-" in (response.etag or "") else 0.0
