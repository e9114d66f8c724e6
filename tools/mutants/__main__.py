"""`make mutants`: choose mutants, run them, say which survived."""

import fnmatch
import json
import sys
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mutants.modules import Module, choose_sample, list_mutants, read_equivalents, read_modules
from mutants.mutant import Mutant
from mutants.results import KILLED, Result, Results
from mutants.runs import Events, run_modules

ROOT = Path(__file__).parent.parent.parent


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


@click.command()
@click.option(
    "--sample", type=click.IntRange(0), help="Mutants of each module, besides the named ones. All by default."
)
@click.option("--seed", default="1", help="What the sample is drawn with.")
@click.option("--only", multiple=True, help="Modules or mutants: a part of their name, or a pattern with *.")
@click.option("--jobs", default=2, type=click.IntRange(1), help="Modules to run side by side.")
@click.option("--again", is_flag=True, help="Run what is known too.")
@click.option("--leave-out-failing", is_flag=True, help="Leave out tests that fail without a mutant.")
@click.option("--list", "lists", is_flag=True, help="List the mutants and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the score and the survivors as JSON.")
@click.option("--record", is_flag=True, help="Write what is known to docs/reliability.md.")
def main(
    sample: int | None, seed: str, only: tuple[str, ...], *, jobs: int, again: bool, leave_out_failing: bool,
    lists: bool, as_json: bool, record: bool,
) -> None:  # fmt: skip
    """Change the critical modules one place at a time, and see whether a nearest test notices."""
    del record
    results = Results(ROOT / "build" / "mutants" / "results.jsonl")
    chosen = choose(sample, seed, only)
    if lists:
        for module, mutants in chosen.items():
            for mutant in mutants:
                click.echo(f"{module.name} {mutant.label}")
        return
    left = {
        module: found
        for module, mutants in chosen.items()
        if (found := [each for each in mutants if again or results.find(module, each) is None])
    }
    console = Console(stderr=as_json)
    display = Display(console)
    with display.progress:
        events = Events(display.begin, display.tell, display.tell_broken)
        run_modules(left, results, events, jobs=jobs, leaves_out_failing=leave_out_failing)
    report(chosen, results, console, as_json=as_json)
    sys.exit(1 if display.broken else 0)


def choose(sample: int | None, seed: str, only: tuple[str, ...]) -> dict[Module, list[Mutant]]:
    """Return the mutants to run by module."""
    chosen: dict[Module, list[Mutant]] = {}
    for module in read_modules(ROOT):
        if not is_wanted(module.name, only) and only and not any(":" in each or "/" in each for each in only):
            continue
        mutants = list(list_mutants(module))
        if only and not is_wanted(module.name, only):
            mutants = [mutant for mutant in mutants if is_wanted(mutant.place, only)]
        if mutants:
            chosen[module] = choose_sample(mutants, sample, f"{seed} {module.name}")
    return chosen


def is_wanted(name: str, only: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(name, each if "*" in each else f"*{each}*") for each in only)


def report(chosen: dict[Module, list[Mutant]], results: Results, console: Console, *, as_json: bool) -> None:
    """Print the score of each module and the survivors."""
    equivalents = read_equivalents()
    found: dict[str, Any] = {}
    for module, mutants in chosen.items():
        pairs = list(results.find_all(module, mutants))
        survived = [each for each, result in pairs if result.verdict == "survived"]
        equal = [each for each in survived if (each.path, each.source, each.before, each.after) in equivalents]
        killed = sum(result.verdict in KILLED for _, result in pairs)
        alive = [each.label for each in survived if each not in equal]
        found[module.name] = {"killed": killed, "survived": alive, "equivalent": [each.label for each in equal]}
    if as_json:
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for name, each in found.items():
        alive, equal = len(each["survived"]), len(each["equivalent"])
        line = f"{name:16} {each['killed']:4} killed {alive:3} survived {equal:3} equivalent"
        console.print(line, highlight=False)


if __name__ == "__main__":
    main(prog_name="make mutants")
