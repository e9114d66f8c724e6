"""What is known of each mutant: lines of JSON. The last one about a mutant counts, as long as it is still true."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants.modules import Module
from mutants.mutant import Mutant, digest

KILLED = ("killed", "timeout")


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on a mutant, and of which code and tests it speaks."""

    module: str
    place: str
    code: str
    """The digest of the mutated file."""
    tests: str
    """The digest of the test that killed it; of all nearest tests where it survived."""
    verdict: str
    """`killed`, `timeout`, `survived`, or `invalid` where PostgreSQL does not take it."""
    by: str
    """The test that failed."""
    ran: int
    """How many tests were run."""
    seconds: float


def digest_tests(module: Module, by: str) -> str:
    """Return the digest of the file of one test, or of all tests of a module where there is no such file."""
    path = by.partition("::")[0]
    paths = [path] if path in module.all_tests else module.all_tests
    return digest(*(module.root / each for each in paths))


class Results:
    """The file of results."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, str], Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                result = Result(**json.loads(line))
                self._known[result.module, result.place] = result

    def find(self, module: Module, mutant: Mutant) -> Result | None:
        """Return the result of a mutant; None where there is none, or code or tests have changed since."""
        result = self._known.get((module.name, mutant.place))
        if result is None or result.code != digest(module.root / mutant.path):
            return None
        return result if result.tests == digest_tests(module, result.by) else None

    def find_all(self, module: Module, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, Result]]:
        """Yield what is known of these mutants. One that survived counts as alive until it is run again."""
        for mutant in mutants:
            if result := self.find(module, mutant) or self._find_survivor(module, mutant):
                yield mutant, result

    def _find_survivor(self, module: Module, mutant: Mutant) -> Result | None:
        """Return the result of a mutant of today's code that survived, whatever tests have come since."""
        result = self._known.get((module.name, mutant.place))
        if result is None or result.verdict != "survived" or result.code != digest(module.root / mutant.path):
            return None
        return result

    def add(self, result: Result) -> None:
        self._known[result.module, result.place] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
