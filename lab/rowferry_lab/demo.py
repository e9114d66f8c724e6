"""The steps of the demo: prepare, migrate, kill a worker, lose some objects, repair, and audit the result."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import click
import psycopg
from rich.console import Console
from rich.rule import Rule

from rowferry.db.connection import connect
from rowferry.errors import RowferryError
from rowferry.reports.progress import read_counts
from rowferry_lab.queries import statement
from rowferry_lab.simulated.environment import Environment, start_environment
from rowferry_queues.migrate.spec import MIGRATE

HIDDEN_OBJECTS = 3
"""How many legacy objects are lost by accident before the migration."""
KILL_DEADLINE = timedelta(seconds=60)


def run_demo(entries: int, workers: int, *, keep: bool) -> int:
    """Run the demo and return its exit status: 0 when every row points at an object and the counts balance."""
    console = Console(highlight=False)
    began = time.monotonic()
    _head(console, "A PostgreSQL and an S3 server for the demo")
    with start_environment() as environment:
        console.print(f"[dim]Both run in temporary folders; the plan is {environment.plan_path}:[/]\n")
        console.print(environment.plan_path.read_text(), markup=False)
        _head(console, f"{entries:,} small images, some legacy, some production, and a row for each")
        _run("prepare", str(entries), "--yes", "--clean-production")
        _run("init")
        hidden = _hide_objects(environment)
        console.print(f"[dim]By accident, {len(hidden)} legacy objects are lost. This has not been noticed yet.[/]")
        _head(console, f"{workers} workers migrate, and one of them is killed (SIGKILL)")
        _migrate(console, workers)
        _head(console, "What went wrong?")
        _run("errors")
        _put_back(environment, hidden)
        console.print("[dim]The lost objects are found and put back. The batches go back into the queue:[/]")
        _run("requeue", "--all")
        _head(console, "The rest")
        _run("migrate", "--yes", "--processes", str(workers), "--log-file", str(environment.folder / "migrate.log"))
        passed = _audit(console, environment)
        console.print(f"\n[dim]The demo took {time.monotonic() - began:.0f} s.[/]")
        if keep:
            _keep(console, environment)
    return 0 if passed else 1


def _head(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{title}", align="left", style="cyan"))


def _run(*arguments: str, expected: tuple[int, ...] = (0,)) -> None:
    """Show a command as a user would type it, and run it. Raises RowferryError when it ends otherwise than expected."""
    shown = shlex.join(argument for argument in arguments)
    click.secho(f"$ rowferry {shown}", bold=True)
    status = subprocess.run([sys.executable, "-m", "rowferry_cli", *arguments], check=False).returncode
    if status not in expected:
        raise RowferryError(f"`rowferry {shown}` ended with exit status {status}, which the demo did not expect.")


def _migrate(console: Console, workers: int) -> None:
    """Migrate; meanwhile kill the first worker that holds a batch. The missing objects make the exit status 1."""
    done = Event()
    killer = Thread(target=_kill_a_worker, args=(console, done), name="killer", daemon=True)
    if workers > 1:
        killer.start()
    log_path = os.environ["ROWFERRY_PLAN"].replace("rowferry.toml", "migrate.log")
    try:
        _run("migrate", "--yes", "--processes", str(workers), "--log-file", log_path, expected=(0, 1))
    finally:
        done.set()
    if workers > 1:
        killer.join(5)


def _kill_a_worker(console: Console, done: Event) -> None:
    """Kill a worker with SIGKILL while it holds a batch and some others are finished already."""
    deadline = time.monotonic() + KILL_DEADLINE.total_seconds()
    with connect("demo", autocommit=True) as connection:
        while not done.wait(0.05) and time.monotonic() < deadline:
            victim = None
            with suppress(psycopg.errors.DeadlockDetected):  # the views may be replaced at this moment
                victim = connection.execute(statement("busy_worker")).fetchone()
            if victim is not None:
                os.kill(victim["pid"], signal.SIGKILL)
                console.print(
                    f"[yellow]⚡ kill -9 {victim['pid']}: a worker dies in the middle of batch {victim['batch_id']}[/]"
                )
                return


def _hide_objects(environment: Environment) -> dict[str, dict[str, Any]]:
    """Delete some legacy objects that rows point at, and return what is needed to put them back."""
    s3 = environment.open_s3()
    hidden: dict[str, dict[str, Any]] = {}
    listing = s3.list_objects_v2(Bucket="sketch-legacy-s3", Prefix="image/", MaxKeys=HIDDEN_OBJECTS)
    for item in listing.get("Contents", []):
        found = s3.get_object(Bucket="sketch-legacy-s3", Key=item["Key"])
        hidden[item["Key"]] = {"Body": found["Body"].read(), "ContentType": found["ContentType"]}
        s3.delete_object(Bucket="sketch-legacy-s3", Key=item["Key"])
    return hidden


def _put_back(environment: Environment, hidden: dict[str, dict[str, Any]]) -> None:
    s3 = environment.open_s3()
    for key, content in hidden.items():
        s3.put_object(Bucket="sketch-legacy-s3", Key=key, **content)


def _audit(console: Console, environment: Environment) -> bool:
    """Check every row against the buckets, and the counts against each other."""
    _head(console, "The audit: every row, every object")
    status = subprocess.run(
        [sys.executable, "-m", "rowferry_cli", "status", "--json", "--no-objects"], check=True, capture_output=True
    )
    legacy = json.loads(status.stdout)["entries"]["legacy"]
    paginator = environment.open_s3().get_paginator("list_objects_v2")
    pages = paginator.paginate(Bucket="sketch-production-s3")
    existing = {item["Key"] for page in pages for item in page.get("Contents", [])}
    with connect("demo", autocommit=True) as connection:
        keys = [row["path"] for row in connection.execute(statement("demo_keys"))]
        counts = read_counts(connection, "avatars", MIGRATE.name)
    dangling = sum(key not in existing for key in keys)
    checks = {
        f"{legacy} legacy entries are left": legacy == 0,
        f"{len(keys):,} rows, {dangling} of them without an object": dangling == 0,
        f"{counts.entries:,} entries = the sum of their outcomes": counts.balances and not counts.waiting,
        f"{counts.batches_error} batches in ERROR": counts.batches_error == 0,
    }
    for words, passed in checks.items():
        console.print(f"  {'[green]✓' if passed else '[red]✗'}[/] {words}")
    return all(checks.values())


def _keep(console: Console, environment: Environment) -> None:
    """Keep the servers until Ctrl-C."""
    console.print("\nThe servers go on until Ctrl-C. In another terminal:\n")
    console.print(environment.exports(), markup=False, soft_wrap=True)
    stop = Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    try:
        stop.wait()
    except KeyboardInterrupt:
        console.print("Stopped.")
