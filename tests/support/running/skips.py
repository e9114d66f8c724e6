"""Which skips a run may have: the entries of tests/skips.toml, and the machines that each of them excuses."""

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from support.checkout import ROOT

LIST = ROOT / "tests" / "skips.toml"
NOT_RUN = ROOT / ".tools" / "not-run"
"""A file for each part that could not be installed, named after it; its text says why. Written by tools/not-run."""

COULD_NOT_BE_INSTALLED = "could not be installed"


@dataclass(frozen=True, slots=True)
class AllowedSkip:
    """An entry of the list. `reason` and `tests` are patterns as of a shell; `where` is a machine with this skip."""

    reason: str
    where: str
    why: str
    tests: str = "tests/*"
    part: str = ""

    def excuses(self, nodeid: str, reason: str) -> bool:
        """Return whether the entry is about this skip, and about this machine."""
        return self.is_about(nodeid, reason) and is_here(self.where, self.part)

    def is_about(self, nodeid: str, reason: str) -> bool:
        return fnmatchcase(reason, self.reason) and fnmatchcase(nodeid, self.tests)


def read_allowed_skips(path: Path = LIST) -> tuple[AllowedSkip, ...]:
    """Return the entries. Raises TypeError for a field too many or too few, ValueError for an unknown machine."""
    entries = tuple(AllowedSkip(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["skip"])
    for entry in entries:
        is_here(entry.where, entry.part)
    return entries


def find_entry(entries: Iterable[AllowedSkip], nodeid: str, reason: str) -> AllowedSkip | None:
    """Return the entry that excuses a skip; None when there is none."""
    return next((entry for entry in entries if entry.excuses(nodeid, reason)), None)


def find_part(entries: Iterable[AllowedSkip], nodeid: str, reason: str) -> AllowedSkip | None:
    """Return the entry that names the part which is absent, whether or not it may be; None when there is none."""
    return next((entry for entry in entries if entry.part and entry.is_about(nodeid, reason)), None)


def is_here(where: str, part: str = "") -> bool:
    """Return whether this machine is one of those that an entry names. Raises ValueError for a name that is unknown."""
    if where == COULD_NOT_BE_INSTALLED:
        return read_why_not_run(part) is not None
    if found := re.fullmatch(r"PostgreSQL (before|from) (\d+)", where):
        from support.postgres.servers import INSTALLATIONS

        return any((version < int(found[2])) == (found[1] == "before") for version in INSTALLATIONS)
    if where not in MACHINES:
        raise ValueError(f"no machine is called {where!r} in {LIST.name}: use one of {', '.join(MACHINES)}")
    return MACHINES[where]()


def read_why_not_run(part: str) -> str | None:
    """Return why a part could not be installed, as the tool that tried has written it; None when it wrote nothing."""
    try:
        return (NOT_RUN / part).read_text(encoding="utf-8").strip() if part else None
    except FileNotFoundError:
        return None


MACHINES: dict[str, Callable[[], bool]] = {
    "anywhere": lambda: True,
    "not Linux": lambda: sys.platform != "linux",
    "not root": lambda: os.geteuid() != 0,
    "no checkout of git": lambda: not (ROOT / ".git").exists(),
    "another environment": lambda: Path(sys.prefix) != ROOT / ".venv",
}
"""Names of machines for `where`; besides them `could not be installed` and `PostgreSQL before 17` or `from 16`."""
