"""What a run of `make mutants` shows: bars at a terminal, lines elsewhere."""

from collections import Counter
from threading import Lock
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mutants.modules import Module
from mutants.mutant import Mutant
from mutants.results import Result


class Display:
    """Says how a run goes: a bar for each module at a terminal, a line for each mutant elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[count]}"),
        )
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, Any] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._lock = Lock()
        self.broken: dict[str, str] = {}

    def begin(self, module: Module, count: int) -> None:
        with self._lock:
            self._counts[module.name] = Counter()
            self._tasks[module.name] = self.progress.add_task(module.name, total=count, count="tests without a mutant")

    def tell(self, module: Module, mutant: Mutant, result: Result) -> None:
        with self._lock:
            self._counts[module.name][result.verdict] += 1
            words = ", ".join(f"{count} {verdict}" for verdict, count in self._counts[module.name].items())
            self.progress.update(self._tasks[module.name], advance=1, count=words)
            if result.verdict == "survived" or not self._console.is_terminal:
                line = (
                    f"{result.verdict:8} {module.name:12} {mutant.label}  [{result.ran} tests, {result.seconds:.0f} s]"
                )
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def tell_broken(self, module: Module, line: dict[str, Any]) -> None:
        with self._lock:
            if "broken" in line:
                self.broken[module.name] = line["broken"]
                words = f"not run: {module.name}: {line['broken']}"
            else:
                words = f"{module.name}: left out, since they fail without a mutant"
            words = "\n  ".join([words, *line.get("failed", ())])
            self._console.print(words, markup=False, highlight=False, soft_wrap=True)
