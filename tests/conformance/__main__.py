"""`make test-servers`: every check on every server; exit status 1 when anything is wrong."""

import signal
import sys
import time
from contextlib import ExitStack

import click

from conformance.ask import Facts, ask_server
from conformance.run import Finding, run_stage
from conformance.stage import Direction, make_stage
from rowferry.demo.s3_server import S3Server
from s3_servers import SERVERS, NotInstalled
from servers import DatabaseServers

DIRECTIONS: tuple[Direction, ...] = ("within", "from", "to")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(SERVERS)), help="A server; may be given again.")
@click.option("--record", "recorded", is_flag=True, help="Write the results to tests/conformance and docs/servers.md.")
def main(only: tuple[str, ...], recorded: bool) -> None:
    """Hold rowferry against real S3 servers, each as legacy, as production and as both."""
    failed = False
    with ExitStack() as until:
        databases = DatabaseServers(until)
        for name in only or SERVERS:
            try:
                server = SERVERS[name]()
            except NotInstalled as reason:
                click.secho(f"– {name}: not run: {reason}", fg="yellow")
                failed |= bool(only)
                continue
            failed |= not run_server(name, server, databases)
    sys.exit(failed)


def run_server(name: str, server: S3Server, databases: DatabaseServers) -> bool:
    """Run every check on one server; return whether nothing was wrong."""
    right, started = True, time.monotonic()
    with server, SERVERS["moto" if name == "versitygw" else "versitygw"]() as partner:
        facts, other = ask_server(server), ask_server(partner)
        for direction in DIRECTIONS:
            legacy, production = choose_sides(direction, (server, facts), (partner, other))
            with make_stage(direction, legacy, production, databases) as stage:
                for finding in run_stage(stage):
                    show(name, direction, finding)
                    right &= finding.wrong is None
    click.echo(f"  {name}: {time.monotonic() - started:.0f} s")
    return right


Known = tuple[S3Server, Facts]


def choose_sides(direction: Direction, server: Known, partner: Known) -> tuple[Known, Known]:
    """Return the legacy and the production server."""
    return {"within": (server, server), "from": (server, partner), "to": (partner, server)}[direction]


def show(name: str, direction: Direction, finding: Finding) -> None:
    mark = click.style("✗", fg="red") if finding.wrong else click.style("✓", fg="green")
    words = finding.wrong or "; ".join(finding.limits)
    click.echo(f"{mark} {name} {direction}: {finding.check}{': ' if words else ''}{words}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left running
    main(prog_name="make test-servers")
