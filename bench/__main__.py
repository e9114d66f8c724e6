"""`make bench`: run the benches, write their results, print what was asked for and what was seen.

python -m bench [--only copy,claim] [--short | --reduced] [--list]
"""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench import BENCHES, load_bench
from bench.page import describe_target, list_targets, read_results
from bench.record import RESULTS, Record

console = Console()


def parse_only(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[str]:
    """Return the names of the chosen benches in the order in which they run; all of them where none was chosen."""
    chosen = value.split(",") if value else list(BENCHES)
    if unknown := sorted(set(chosen) - set(BENCHES)):
        raise click.BadParameter(f"there is no {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    return [name for name in BENCHES if name in chosen]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", callback=parse_only, metavar="NAME,…", help="Run these alone.")
@click.option("--short", is_flag=True, help="Prove in seconds that the benches run; the figures say nothing.")
@click.option("--reduced", is_flag=True, help="Measure with fewer and shorter repetitions.")
@click.option("--results", type=click.Path(path_type=Path), help="Where the results go.")
@click.option("--list", "listing", is_flag=True, help="Say which benches there are, and run none.")
def command(only: list[str], short: bool, reduced: bool, results: Path | None, listing: bool) -> None:
    """Measure rowferry on this machine, side by side with the baselines."""
    if listing:
        for name in only:
            console.print(f"{name:<12} {BENCHES[name]}")
        return
    folder = results or (Path(tempfile.mkdtemp(prefix="rowferry-bench-")) if short else RESULTS)
    records = [Record(name, BENCHES[name], short, reduced) for name in only]
    failed = [
        record.name
        for number, record in enumerate(records, 1)
        if not run_bench(record, f"{number}/{len(only)}", folder)
    ]
    print_targets(folder, only, failed)
    if short:
        console.print("A short run proves that the benches run; its figures say nothing about speed.")
    if failed:
        console.print(f"[red]Failed: {', '.join(failed)}. Their results are as they were before.[/red]")
        sys.exit(1)


def run_bench(record: Record, place: str, folder: Path) -> bool:
    """Run one bench and write its results; return whether it came to its end."""
    name, record.began = record.name, datetime.now(UTC)
    try:
        with console.status(f"{place} {name}") as status:
            record.report = lambda line: status.update(f"{place} {name}: {line}")
            load_bench(name).run(record)
    except Exception:  # noqa: BLE001 - one bench is isolated from the next
        console.print_exception(max_frames=4)
        console.print(f"[red]✗[/red] {place} {name}")
        return False
    path = record.write(folder)
    seconds = record.compose()["seconds"]
    console.print(f"[green]✓[/green] {place} {name:<12} {BENCHES[name]} [dim]{seconds:.0f} s, {path}[/dim]")
    return True


def print_targets(folder: Path, names: list[str], failed: list[str]) -> None:
    """Print one line a target of the benches that were run; of one that failed, what an earlier run has left if any."""
    table = Table("bench", "what", "target", "seen", "reached", "when", title="What was asked for, and what was seen")
    results = read_results(folder, names)
    for result, target in list_targets(results):
        _, wanted, seen, reached = describe_target(target)
        colour = "green" if target["reached"] else "red"
        when, style = ("now", None) if result["name"] not in failed else (f"old, of {result['when'][:10]}", "dim")
        table.add_row(result["name"], target["what"], wanted, seen, f"[{colour}]{reached}[/]", when, style=style)
    for name in sorted(set(failed) - {result["name"] for result in results}):
        table.add_row(name, "", "", "", "", "[red]failed, and never seen[/]")
    console.print(table)


if __name__ == "__main__":
    sys.exit(command())
