"""What the application knows of its objects: each version of each, and on which side it has put the newest."""

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal

from torture.oracle import digest

Table = Literal["pictures", "files"]
"""Rows that move, and rows that stay."""
Entry = tuple[Table, int]


@dataclass(frozen=True, slots=True)
class History:
    """Of one object, the digests of what was ever stored and acknowledged, the newest last."""

    versions: tuple[bytes, ...] = ()
    is_legacy: bool = True
    """Whether the newest was written to the legacy bucket."""
    pending: frozenset[bytes] = frozenset()
    """What was written in a transaction that has not ended, or is being written."""
    keys: tuple[str, ...] = ()
    """Under which it may stand, on either side."""
    deleted_at: float | None = None
    """Unix time, in seconds, at which both its keys were gone."""
    is_going: bool = False
    """Whether it is deleted, or its deletion has begun."""


@dataclass
class Histories:
    """Those of all objects; threads share it. The application tells what it is about to do before it does it."""

    _histories: dict[Entry, History] = field(default_factory=dict[Entry, History])
    _turn: Lock = field(default_factory=Lock)

    def begin(self, entry: Entry, body: bytes, keys: tuple[str, ...]) -> None:
        """From now on the object may have this body, and may still have the one before."""
        with self._turn:
            known = self._histories.get(entry, History(keys=keys))
            self._histories[entry] = replace(known, pending=known.pending | {digest(body)})

    def acknowledge(self, entry: Entry, body: bytes, *, is_legacy: bool) -> None:
        """The transaction has ended: this is the newest version."""
        with self._turn:
            known, new = self._histories[entry], digest(body)
            self._histories[entry] = replace(
                known, versions=(*known.versions, new), is_legacy=is_legacy, pending=known.pending - {new}
            )

    def withdraw(self, entry: Entry) -> None:
        """The row was never there: its transaction was rolled back."""
        with self._turn:
            del self._histories[entry]

    def begin_deletion(self, entry: Entry) -> None:
        with self._turn:
            self._histories[entry] = replace(self._histories[entry], is_going=True)

    def end_deletion(self, entry: Entry, at: float) -> None:
        with self._turn:
            self._histories[entry] = replace(self._histories[entry], deleted_at=at)

    def of(self, entry: Entry) -> History | None:
        with self._turn:
            return self._histories.get(entry)

    def living(self) -> list[Entry]:
        """Return the objects that were acknowledged and are not being deleted."""
        with self._turn:
            return [entry for entry, known in self._histories.items() if known.versions and not known.is_going]

    def deleted(self) -> dict[Entry, History]:
        """Return the objects of which both keys are gone."""
        with self._turn:
            return {entry: known for entry, known in self._histories.items() if known.deleted_at is not None}


def judge(before: History, after: History, body: bytes | None, *, from_legacy: bool, is_over: bool) -> str | None:
    """Return what is wrong with a body that was read between two looks at its history; None: nothing.

    An older version may be read on the other side than that where the application has put the newest, as long as the
    switch is not over (docs/application.md).
    """
    if body is None:
        return "is missing"
    found = digest(body)
    if found in {*after.versions[max(0, len(before.versions) - 1) :], *before.pending, *after.pending}:
        return None
    if found not in after.versions:
        return f"has {len(body)} wrong bytes"
    if not is_over and from_legacy != before.is_legacy:
        return None
    return "is old"
