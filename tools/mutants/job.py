"""What a stand is told to do: a file of JSON."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One mutant, or what is left of it."""

    place: str
    path: str
    line: int
    last_line: int
    text: str
    """The file's text with the mutation."""
    imported: tuple[str, ...] = ()
    """The tests to run, where the process has imported the mutant from the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A module and its mutants."""

    root: str
    files: list[str]
    tests: list[str]
    processes: list[str]
    results: str
    """The file that gets what is found, a line of JSON for each mutant."""
    baseline: str
    """The file that keeps what was found without a mutant."""
    leaves_out_failing: bool
    tasks: list[Task] = field(default_factory=list)

    @property
    def all_tests(self) -> list[str]:
        return list(dict.fromkeys((*self.tests, *self.processes)))

    def locate(self, path: str) -> str:
        """Return where a file of the checkout is."""
        return str(Path(self.root, path))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def tell(self, line: dict[str, Any]) -> None:
        """Append a line to the results."""
        with Path(self.results).open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")


def read_job(path: Path) -> Job:
    content = json.loads(path.read_text(encoding="utf-8"))
    tasks = [Task(**task) for task in content.pop("tasks")]
    return Job(**content, tasks=tasks)
