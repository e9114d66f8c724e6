"""When is the moment to switch the application? Decided by the passes so far. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rowferry.formatting import count

SHORTER = 0.8
"""A pass that took less than this part of the one before tells that the next may be shorter still."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one pass has done."""

    number: int
    seconds: float
    entries: int
    """Entries that it took."""
    copied: int
    """Entries of which it copied an object."""
    bytes: int
    unsettled: int
    """Entries of the migration that are missing, in conflict or failed, those of earlier passes included."""
    is_whole: bool = True
    """False: it went on with a pass that had begun before, so its figures are not those of a pass."""
    held_back_by: str | None = None
    """Why the next pass takes more rows than it had to."""

    def __str__(self) -> str:
        """Return it as one line."""
        line = (
            f"Pass {self.number}: {self.seconds:,.1f} s, {count(self.entries, 'entry', 'entries')}, "
            f"{self.copied:,} copied, {self.unsettled:,} left"
        )
        return (
            f"{line}; later passes take more than they had to, because of {self.held_back_by}"
            if (self.held_back_by)
            else line
        )

    def as_document(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "pass": self.number,
            "seconds": round(self.seconds, 3),
            "entries": self.entries,
            "copied": self.copied,
            "bytes": self.bytes,
            "left": self.unsettled,
            "held_back_by": self.held_back_by,
        }


def find_moment(passes: Sequence[PassResult]) -> str | None:
    """Return why now is the moment, in words with figures; None: the next pass may well be shorter.

    It is when the last pass copied nothing, or when it took 80 % of the time of the one before, or longer.
    """
    whole = [each for each in passes if each.is_whole]
    if not whole or not passes[-1].is_whole:
        return None
    last = whole[-1]
    took = f"pass {last.number} took {last.seconds:,.1f} s"
    if last.copied == 0:
        return f"{took} and copied 0 objects"
    if len(whole) > 1 and last.seconds >= SHORTER * whole[-2].seconds:
        copied = count(last.copied, "object", "objects")
        return f"{took} and copied {copied}, and the one before took {whole[-2].seconds:,.1f} s: they get no shorter"
    return None
