"""`make test-servers`: every check on every server; exit status 1 when anything is wrong."""

import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from conformance.ask import Facts, ask_server
from conformance.checks import CHECKS
from conformance.environment import Direction, make_environment
from conformance.page import record
from conformance.run import Finding, run_checks
from rowferry_lab.servers.s3_servers import S3Server
from rowferry_lab.servers.server_process import ServerFailed
from support.postgres.servers import DatabaseServers
from support.s3.servers import MORE_SERVERS, SERVERS, NotInstalled
from support.s3.servers.versions import read_version

PARTNERS = ("versitygw", "moto")
"""What is at the other end: the one checks signatures and digests, the other takes every key."""
ALL = {**SERVERS, **MORE_SERVERS}
ALL_KEYS = [check for check in CHECKS if check.name == "strange keys"]

Known = tuple[S3Server, Facts]


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*ALL]), help="A server; may be given again.")
@click.option("--record", "recorded", is_flag=True, help="Write the results to tests/conformance and docs/servers.md.")
def main(only: tuple[str, ...], recorded: bool) -> None:
    """Hold rowferry against real S3 servers, each as legacy, as production and as both."""
    logging.getLogger().addHandler(logging.NullHandler())
    results: dict[str, Any] = {}
    with ExitStack() as until:
        databases = DatabaseServers(until)
        partners = {name: until.enter_context(SERVERS[name]()) for name in PARTNERS}
        known = {name: (server, ask_server(server)) for name, server in partners.items()}
        for name in only or ALL:
            try:
                results[name] = run_server(name, ALL[name](), known, databases)
            except (NotInstalled, ServerFailed) as reason:
                click.secho(f"– {name}: not run: {reason}", fg="yellow")
                if name in SERVERS:
                    results[name] = {"version": "–", "when": "–", "reason": str(reason).partition("\n")[0]}
            if recorded:
                record(results)
    wrong = [each for result in results.values() for each in result.get("findings", ()) if each["wrong"]]
    click.echo(f"{len(wrong)} wrong")
    sys.exit(bool(wrong) or any("findings" not in results.get(name, {}) for name in only))


def run_server(name: str, server: S3Server, partners: dict[str, Known], databases: DatabaseServers) -> dict[str, Any]:
    """Run every check on one server, in every direction and with each partner; return what came of it."""
    findings: list[dict[str, Any]] = []
    started = time.monotonic()
    with server:
        facts = ask_server(server)
        others = [partners[other] for other in PARTNERS if other != name]
        for number, (direction, legacy, production) in enumerate(list_pairs((server, facts), others)):
            with make_environment(direction, legacy, production, databases) as setup:
                pair = f"{setup.legacy.name} → {setup.production.name}"
                found = run_checks(setup) if number < 3 else run_checks(setup, ALL_KEYS, {})
                for finding in found:
                    show(pair, finding)
                    findings.append({"direction": direction, "pair": pair, **asdict(finding)})
    seconds = time.monotonic() - started
    click.echo(f"  {name}: {seconds:.0f} s")
    when, version = datetime.now(UTC).date().isoformat(), read_version(name)
    return {"version": version, "when": when, "seconds": seconds, "behaviour": facts.behaviour, "findings": findings}


def list_pairs(server: Known, partners: list[Known]) -> Iterator[tuple[Direction, Known, Known]]:
    """Yield the legacy and the production server of each migration."""
    yield "within", server, server
    for partner in partners:
        yield "from", server, partner
        yield "to", partner, server


def show(pair: str, finding: Finding) -> None:
    mark = click.style("✗", fg="red") if finding.wrong else click.style("✓", fg="green")
    words = finding.wrong or "; ".join(finding.limits)
    click.echo(f"{mark} {pair}: {finding.check}{': ' if words else ''}{words}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left running
    main(prog_name="make test-servers")
