"""`make corpus`: discover, check, migrate and audit applications, and print a table; exit status 1 if one is wrong."""

import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from support.entries.discovered_plan import HEAD, DiscoveredMigration, Result
from support.entries.discovering import Discovering
from support.entries.unseen_applications import FOLDER, UnseenApplication
from support.postgres.servers import DatabaseServers
from support.s3.buckets import fresh_buckets, running_for_all
from support.s3.servers import SERVERS


@click.command()
@click.argument("names", nargs=-1)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Of NAME.sql and NAME.toml.")
@click.option("--server", type=click.Choice(sorted(SERVERS)), default="versitygw", help="The S3 server.")
@click.option("--plans", type=click.Path(path_type=Path), help="A folder that the discovered plans are kept in.")
def main(names: tuple[str, ...], folder: Path, server: str, plans: Path | None) -> None:
    """Migrate applications by the plans that `rowferry plan --discover` writes for them."""
    known = sorted(path.stem for path in folder.glob("*.sql"))
    if unknown := set(names) - set(known):
        raise click.BadParameter(f"{', '.join(sorted(unknown))}: choose of {', '.join(known)}")
    results: list[Result] = []
    with ExitStack() as until:
        databases = DatabaseServers(until)
        s3 = until.enter_context(running_for_all(SERVERS[server]()))
        for name in names or known:
            with (
                databases.fresh_database(None) as dsn,
                fresh_buckets(s3) as buckets,
                TemporaryDirectory() as work,
                closing(ExitStack()),
            ):
                found = Discovering(dsn, buckets, Path(work))
                migration = DiscoveredMigration(UnseenApplication(name, found, folder), found)
                began = time.monotonic()
                results.append(migration.run())
                show(results[-1], time.monotonic() - began)
                keep(results[-1], found, plans)
    click.echo("\n" + HEAD)
    for result in results:
        click.echo(result.describe())
    right = sum(result.discover.startswith("right") for result in results)
    click.echo(f"\n{right} of {len(results)} right; {sum(len(result.rows_wrong) for result in results)} rows wrong, "
               f"{sum(result.silent for result in results)} objects left without a word.")  # fmt: skip
    sys.exit(any(result.rows_wrong or result.silent or result.check for result in results))


def show(result: Result, seconds: float) -> None:
    click.echo(f"{result.describe()}  ({seconds:.0f} s)", err=True)
    for fault in result.rows_wrong[:3]:
        click.echo(f"    {fault}", err=True)


def keep(result: Result, found: Discovering, plans: Path | None) -> None:
    """Keep the plan, and what each command said."""
    if plans is None:
        return
    plans.mkdir(parents=True, exist_ok=True)
    text = found.plan_path.read_text() if found.plan_path.exists() else "# No plan was written.\n"
    (plans / f"{result.name}.toml").write_text(text)
    (plans / f"{result.name}.txt").write_text(result.said)


if __name__ == "__main__":
    main()
