"""`make mutants`: choose mutants, run them, say which survived."""

import fnmatch
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console

from mutants import page
from mutants.display import Display
from mutants.modules import Module, choose_sample, list_mutants, read_equivalents, read_modules
from mutants.mutant import Mutant
from mutants.results import Results
from mutants.runs import Events, run_modules

ROOT = Path(__file__).parent.parent.parent


@click.command()
@click.option(
    "--sample", type=click.IntRange(0), help="Mutants of each module, besides the named ones. All by default."
)
@click.option("--seed", default="1", help="What the sample is drawn with.")
@click.option("--only", multiple=True, help="Modules by name, or mutants by a part of their place; a pattern with *.")
@click.option("--jobs", default=2, type=click.IntRange(1), help="Modules to run side by side.")
@click.option("--again", is_flag=True, help="Run what is known too.")
@click.option("--known", is_flag=True, help="Run nothing: show, or record, what is known.")
@click.option("--leave-out-failing", is_flag=True, help="Leave out tests that fail without a mutant.")
@click.option("--list", "lists", is_flag=True, help="List the mutants and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the score and the survivors as JSON.")
@click.option("--record", is_flag=True, help="Write what is known to docs/mutants.md.")
def main(
    sample: int | None,
    seed: str,
    only: tuple[str, ...],
    *,
    jobs: int,
    again: bool,
    known: bool,
    leave_out_failing: bool,
    lists: bool,
    as_json: bool,
    record: bool,
) -> None:
    """Change the critical modules one place at a time, and see whether a nearest test notices."""
    results = Results(ROOT / "build" / "mutants" / "results.jsonl")
    every = {module: list(list_mutants(module)) for module in read_modules(ROOT) if is_wanted(module, only)}
    chosen = {module: choose(module, mutants, sample, seed, only) for module, mutants in every.items()}
    if lists:
        for module, mutants in chosen.items():
            for mutant in mutants:
                click.echo(f"{module.name} {mutant.label}")
        return
    left = {
        module: found
        for module, mutants in chosen.items()
        if not known and (found := [each for each in mutants if again or results.find(module, each) is None])
    }
    console = Console(stderr=as_json)
    display = Display(console)
    with display.progress:
        events = Events(display.begin, display.tell, display.tell_broken)
        run_modules(left, results, events, jobs=jobs, leaves_out_failing=leave_out_failing)
    equivalents = read_equivalents()
    scores = [
        replace(page.score(module, mutants, results, equivalents), not_run=display.broken.get(module.name, ""))
        for module, mutants in every.items()
    ]
    if record:
        page.record(scores, [module.name for module in read_modules(ROOT)])
    report(scores, console, as_json=as_json)
    sys.exit(1 if display.broken else 0)


def is_wanted(module: Module, only: tuple[str, ...]) -> bool:
    """Return whether a module, or a file of it, is among the chosen ones."""
    return not only or any(
        fits(module.name, pattern) or any(fits(f"{path}:", pattern.partition(":")[0]) for path in module.files)
        for pattern in only
    )


def choose(module: Module, mutants: list[Mutant], sample: int | None, seed: str, only: tuple[str, ...]) -> list[Mutant]:
    """Return the mutants of a module to run."""
    if only and not any(fits(module.name, pattern) for pattern in only):
        mutants = [mutant for mutant in mutants if any(fits(mutant.place, pattern) for pattern in only)]
    return choose_sample(mutants, sample, f"{seed} {module.name}")


def fits(name: str, pattern: str) -> bool:
    """Return whether a name holds a pattern; one without a slash is a module's name, with * for any letters."""
    return fnmatch.fnmatchcase(name, f"*{pattern}*" if "/" in pattern else pattern)


def report(scores: list[page.Score], console: Console, *, as_json: bool) -> None:
    """Print the score of each module and the survivors."""
    if as_json:
        click.echo(json.dumps([asdict(each) for each in scores], indent=1, ensure_ascii=False))
        return
    for line in page.compose(scores):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main(prog_name="make mutants")
