"""What a refusal of an S3 server means and what to type: refusals.toml, read by all who tell it."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec

from rowferry.plan.sides import Side


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[case]]; all that it names must fit, and an empty one fits everything."""

    name: str
    means: str
    cure: str
    fault: Literal["side", "object"]
    codes: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    operations: tuple[str, ...] = ()
    words: str = ""
    lacks: str = ""
    guess: bool = False


class Refusal(NamedTuple):
    """What a server said, as far as it is known."""

    code: str
    """S3's error code, `HTTP 403` where there was none, or a code of our own."""
    message: str = ""
    status: int = 0
    operation: str = ""


class Cure(NamedTuple):
    """What to tell a person about a refusal."""

    case: str
    means: str
    cure: str
    is_guess: bool

    def __str__(self) -> str:
        """Return both in words; a guess says that it is one."""
        return f"{'perhaps ' if self.is_guess else ''}{self.means}: {self.cure}"


def find_cure(refusal: Refusal, side: Side | None = None) -> Cure | None:
    """Return what to tell; None where no case fits. `side`: None where it is not known which, or not from a plan."""
    for case in list_cases():
        if _fits(case, refusal, side):
            return _tell(case, refusal, side)
    return None


@cache
def list_cases() -> tuple[Case, ...]:
    """Return all cases in their order. Raises msgspec.ValidationError where the file is not as it should be."""
    text = files("rowferry.s3").joinpath("refusals.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=dict[str, tuple[Case, ...]])["case"])


@cache
def codes_of_sides() -> dict[str, Case]:
    """Return the cases that a code alone tells, and that hold for every object of a side, by code."""
    alone = (
        case for case in list_cases() if case.fault == "side" and not (case.words or case.operations or case.lacks)
    )
    return {code: case for case in alone for code in _list_codes(case)}


def _list_codes(case: Case) -> Iterator[str]:
    yield from case.codes
    yield from (f"HTTP {status}" for status in case.statuses)


def _fits(case: Case, refusal: Refusal, side: Side | None) -> bool:
    if case.codes and refusal.code not in case.codes:
        return False
    if case.statuses and refusal.status not in case.statuses:
        return False
    if case.operations and refusal.operation not in case.operations:
        return False
    if case.lacks and side is not None and getattr(side, case.lacks, None):
        return False
    return not case.words or _search(case, refusal) is not None


def _search(case: Case, refusal: Refusal) -> re.Match[str] | None:
    return re.search(case.words, refusal.message, re.IGNORECASE)


def _tell(case: Case, refusal: Refusal, side: Side | None) -> Cure:
    found = _search(case, refusal) if case.words else None
    told = next((each for each in found.groups() if each), "") if found and found.re.groups else ""
    name = side.name if side is not None else "production" if refusal.operation in _WRITES else "legacy or production"
    words = {"side": name, "SIDE": name.upper() if side is not None else "…", "told": told}
    return Cure(case.name, case.means.format(**words), case.cure.format(**words), case.guess)


_WRITES = frozenset({"PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy"})
