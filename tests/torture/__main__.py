"""`make torture`: run scenarios one after the other; exit status 1 when anything was violated or never came about."""

import re
import secrets
import signal
import sys
import traceback

import click

from support.checkout import ROOT
from torture.run import Run
from torture.scenarios import SCENARIOS

PAGE = ROOT / "docs" / "internals" / "torture.md"


class TooSlow(RuntimeError):
    """A scenario has not come to its end in time; no kind of OSError, which might be taken for a server's."""


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*SCENARIOS]), help="A scenario; may be given again.")
@click.option("--seed", type=int, help="What all chance comes from; left out: another one each time.")
@click.option("--short", is_flag=True, help="The short form that `make test-all` runs.")
@click.option("--record", "recorded", is_flag=True, help="Write what came of whole runs to docs/internals/torture.md.")
def main(only: tuple[str, ...], seed: int | None, short: bool, recorded: bool) -> None:
    """Torture rowferry on this machine, with servers and a data set of its own."""
    seed = secrets.randbelow(10**6) if seed is None else seed
    if recorded and short:
        raise click.UsageError("only the long form is worth recording")
    failed = False
    for name in only or SCENARIOS:
        run = torture(name, seed, short=short)
        failed |= run.failed
        if recorded and not run.skipped:
            record(name, run.as_row(SCENARIOS[name].what))
    sys.exit(failed)


def torture(name: str, seed: int, *, short: bool) -> Run:
    """Run one scenario and say what came of it."""
    scenario = SCENARIOS[name]
    run = Run(name, seed, short, lambda words: show_progress(name, words), scenario.faults)
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, scenario.longest.total_seconds())
    try:
        scenario(run).torture()
    except Exception:  # noqa: BLE001 - the other scenarios are still to be run
        traceback.print_exc()
        run.violation_count += 1
        run.violations.append("the scenario did not come to its end")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    show(run, scenario.what)
    return run


def record(name: str, row: str) -> None:
    """Put a line in the place of that of the scenario's last run."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(rf"(?m)^\| {name} \|.*$", lambda _: row, page), encoding="utf-8")


def give_up(*_: object) -> None:
    """End a scenario that takes too long; what it has started, it ends on the way out."""
    raise TooSlow("no end in time")


def show_progress(name: str, words: str) -> None:
    """Show one line that the next one replaces, on a terminal; else nothing."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K  {name}: {words}", nl=False, err=True)


def show(run: Run, what: str) -> None:
    """Print the account of a run."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[2K", nl=False, err=True)
    click.echo(f"{choose_mark(run)} {run.name}: {what}")
    if not run.was_skipped:
        faults = ", ".join(f"{count:,} {kind}" for kind, count in sorted(run.faults.items()) if count)
        counts = f"{run.entries:,} entries · {run.audits:,} audits · {run.violation_count:,} violations"
        click.echo(f"  {faults or 'no faults'} · {counts}")
        click.echo(f"  {run.seconds:.0f} s · seed {run.seed}")
    for words in run.figures:
        click.echo(f"  {words}")
    for words in run.skipped:
        click.secho(f"  {'skipped' if run.was_skipped else 'not the whole'}: {words}", fg="yellow")
    for kind in run.missing:
        click.secho(f"  PROVED NOTHING: {kind}: never came to pass", fg="red")
    for words in run.violations:
        click.secho(f"  VIOLATION: {words}", fg="red")


def choose_mark(run: Run) -> str:
    """Return the sign before a run: ✓ only where all was done, all faults came, and nothing was violated."""
    if run.failed:
        return click.style("✗", fg="red")
    return click.style("–", fg="yellow") if run.skipped else click.style("✓", fg="green")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left running
    main(prog_name="make torture")
