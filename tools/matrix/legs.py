"""Which combinations of Python and PostgreSQL are tried, and with which tests."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

EMBEDDED = "18"
"""The PostgreSQL of `make test-all`, which is a wheel among the packages and so always here."""
LEAST = 4
"""So many combinations have to run, or the matrix says nothing."""

SHORT = (("3.11", "15"), ("3.12", "14"), ("3.13", "16"), ("3.14", "17"))
"""Each version once, first what Debian has: `make test-all` runs on the machine's own Python and on PostgreSQL 18."""
FULL = (
    *(("3.11", version) for version in ("14", "15", "16", "17", "18")),
    *((version, "18") for version in ("3.12", "3.13", "3.14")),
)


class Leg(NamedTuple):
    """A run of the tests. `marks` chooses among them, as pytest's -m; all of `make test-all` where it is empty."""

    python: str
    postgres: str
    marks: str = ""

    def __str__(self) -> str:
        return f"Python {self.python} and PostgreSQL {self.postgres}"


def choose_legs(
    pairs: Iterable[tuple[str, str]], *, short: bool, pythons: Collection[str], versions: Collection[str], own: str
) -> Iterator[Leg]:
    """Yield the legs that this machine can run, none twice.

    `pythons` and `versions` of PostgreSQL are those that are here; `own` is the environment's.
    What is absent is replaced by what `make test-all` takes: the other half of the pair is tried all the same.
    """
    chosen = set[Leg]()
    for python, postgres in pairs:
        has_python, has_postgres = python in pythons and python != own, postgres in versions
        marks = [name for name, here in (("versions", has_postgres), ("pythons", has_python)) if here]
        if marks:
            words = f"({' or '.join(marks)}) and not soak" if short else ""
            leg = Leg(python if has_python else own, postgres if has_postgres else EMBEDDED, words)
            if leg not in chosen:
                chosen.add(leg)
                yield leg


def judge_matrix(ran: Collection[Leg]) -> str | None:
    """Return what is wrong with a matrix that has run; None when nothing is."""
    found = {(leg.python, leg.postgres) for leg in ran}
    if len(found) >= LEAST:
        return None
    return (
        f"Too few combinations of Python and PostgreSQL ran, {len(found)} of at least {LEAST}: "
        "see the lines NOT RUN, and install Maven and Go"
    )
