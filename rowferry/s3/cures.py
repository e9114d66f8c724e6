"""What a refusal of an S3 server means and what to type: refusals.toml, read by all who tell it."""

import re
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from rowferry.errors import ObjectError
from rowferry.plan.sides import Side
from rowferry.s3.data_files import read_rows
from rowferry.s3.operations import WRITES


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

    @property
    def is_right(self) -> bool:
        """Whether a right is missing, as far as the server's words go."""
        return self.case.endswith("-denied")

    def __str__(self) -> str:
        """Return both in words; a guess says that it is one."""
        return f"{'perhaps ' if self.is_guess else ''}{self.means}: {self.cure}"


_ARN = re.compile(r"\barn:\S+")
"""The name of a user, bucket or key in words of AWS: what it is called says nothing of the case."""
_STORED = re.compile(
    r"(?:(?P<operation>[A-Z]\w+)(?: (?:legacy|production))?: )?(?P<code>HTTP \d+|[A-Z]\w+)(?:: (?P<message>.*))?"
)


def find_cure(refusal: Refusal, side: Side | None = None) -> Cure | None:
    """Return what to tell; None where no case fits. `side`: None where it is not known which, or not from a plan."""
    case = find_case(refusal, side)
    if case is None:
        return None
    name = side.name if side is not None else "production" if refusal.operation in WRITES else "legacy or production"
    return Cure(case.name, case.means, _name_side(case.cure, name, is_known=side is not None), case.guess)


def cure_of(case: str, side: Side) -> str:
    """Return what to type in a case that is known without a refusal. Raises StopIteration for a name of no case."""
    return _name_side(next(each for each in list_cases() if each.name == case).cure, side.name, is_known=True)


def find_case(refusal: Refusal, side: Side | None = None) -> Case | None:
    """Return the first case that fits, with `{told}` filled in; None where none does."""
    for case in list_cases():
        if _fits(case, refusal, side):
            means, cure = (text.replace("{told}", _find_told(case, refusal)) for text in (case.means, case.cure))
            return msgspec.structs.replace(case, means=means, cure=cure)
    return None


def refusal_of(error: ObjectError) -> Refusal:
    """Return what an error of a server says."""
    return Refusal(error.code, error.message, error.status, error.operation)


def read_refusal(text: str) -> Refusal:
    """Return what an error says that was put in words: `PutObject production: NotImplemented: …`."""
    found = _STORED.match(text)
    if found is None:
        return Refusal("", text)
    status = int(found["code"].removeprefix("HTTP ")) if found["code"].startswith("HTTP ") else 0
    return Refusal(found["code"], found["message"] or "", status, found["operation"] or "")


@cache
def list_cases() -> tuple[Case, ...]:
    """Return all cases in their order. Raises msgspec.ValidationError where the file is not as it should be."""
    return read_rows("refusals.toml", "case", Case)


def is_of_side(code: str, status: int = 0) -> bool:
    """Return whether a code, or a status, holds for every object of a side until somebody does something about it."""
    return code in codes_of_sides() or f"HTTP {status}" in codes_of_sides()


@cache
def codes_of_sides() -> frozenset[str]:
    """Return the codes, and the statuses as `HTTP 507`, that alone tell a fault of a side."""
    alone = [
        each for each in list_cases() if each.fault == "side" and not (each.words or each.operations or each.lacks)
    ]
    statuses = (f"HTTP {status}" for case in alone for status in case.statuses)
    return frozenset([*(code for case in alone for code in case.codes), *statuses])


def _name_side(cure: str, name: str, *, is_known: bool) -> str:
    return cure.format(side=name, SIDE=name.upper() if is_known else "*")


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
    return re.search(case.words, _ARN.sub("", refusal.message), re.IGNORECASE)


def _find_told(case: Case, refusal: Refusal) -> str:
    found = _search(case, refusal) if case.words else None
    return next((each for each in found.groups() if each), "") if found is not None else ""
