"""`make bench`: run the benches, print what was seen, write a small file of results for each.

python -m bench [--only copy,claim] [--short | --reduced] [--list]
"""

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench import BENCHES, load_bench
from bench.record import RESULTS, Record, write_number

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
    records = [Record(name, short=short, reduced=reduced) for name in only]
    failed = [record.name for record in records if not run_bench(record, folder)]
    if short:
        console.print("A short run proves that the benches run; its figures say nothing about speed.")
    if failed:
        console.print(f"[red]Failed: {', '.join(failed)}. Their results are as they were before.[/red]")
        sys.exit(1)


def run_bench(record: Record, folder: Path) -> bool:
    """Run one bench, print its table and write its results; return whether it came to its end."""
    try:
        with console.status(record.name) as status:
            record.report = lambda line: status.update(f"{record.name}: {line}")
            load_bench(record.name).run(record)
    except Exception:  # noqa: BLE001 - one bench is isolated from the next
        console.print_exception(max_frames=4)
        return False
    print_table(record)
    console.print(f"[dim]{record.write(folder)}[/dim]")
    return True


def print_table(record: Record) -> None:
    """Print the median of every figure of every contestant, and who is absent."""
    table = Table("contestant", "figure", "median", "from", "to", title=BENCHES[record.name])
    for contestant, figures in record.summarise().items():
        for figure, (median, low, high) in figures.items():
            numbers = map(write_number, (median, low, high))
            table.add_row(contestant, figure.replace("_", " "), *numbers)
    console.print(table)
    for name, why in record.absent.items():
        console.print(f"Absent: {name} ({why}).")


if __name__ == "__main__":
    sys.exit(command())
