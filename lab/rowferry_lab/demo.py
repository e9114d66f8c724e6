"""The steps of the demo: prepare, migrate, kill a worker, lose some objects, repair, and audit the result."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import click
import psycopg
from rich.console import Console
from rich.rule import Rule

from rowferry.db.connection import connect
from rowferry.errors import RowferryError
from rowferry.plan import Plan
from rowferry.reports.progress import read_counts
from rowferry.s3.client import open_object_client
from rowferry.s3.listings.keys import list_pages
from rowferry_cli.reporter import Reporter
from rowferry_cli.status.data import read_data_status
from rowferry_lab.queries import statement
from rowferry_lab.simulated.environment import Environment, start_environment
from rowferry_queues.migrate.spec import MIGRATE

HIDDEN_OBJECTS = 3
"""How many legacy objects are lost by accident before the migration."""
LOOK_EVERY_SECONDS = 0.05
LATENCY = timedelta(milliseconds=200)
"""Of each response until after the kill: workers report how far they are once a second, and were done by then."""
SLOW_SECONDS = 1
"""How long after the kill, so that another worker is seen with the batch. The rest runs as fast as it can."""
NEXT = (
    "rowferry plan --discover --legacy https://SERVER/OLD --production https://SERVER/NEW",
    "rowferry migrate --dry-run    # checks, counts, writes nothing",
    "rowferry migrate",
)
"""How a stranger goes on with a bucket of his own; a key's new prefix is asked for."""
NOT_YET = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.DeadlockDetected)
"""What the view says while the schema is made at the beginning of the migration."""


def run_demo(entries: int, workers: int) -> int:
    """Run the demo and return its exit status: 0 when every row points at an object and the counts balance."""
    console = Console(highlight=False)
    began = time.monotonic()
    _head(console, "A PostgreSQL and an S3 server for the demo")
    with ExitStack() as until:
        with Reporter(yes=True).show_activity("starting PostgreSQL and an S3 server"):
            environment = until.enter_context(start_environment())
        plan = environment.plan
        console.print(
            "[dim]PostgreSQL from a wheel, and S3 by the small server of rowferry's own tests, in memory. Both run in "
            f"temporary folders. The plan is {environment.plan_path}:[/]\n",
        )
        console.print(environment.plan_path.read_text(), markup=False)
        _head(console, f"{entries:,} small images, some legacy, some production, and a row for each")
        _run("prepare", str(entries), "--yes", "--clean-production")
        s3, bucket = environment.open_s3(), plan.legacy.bucket
        hidden = _hide_objects(s3, bucket)
        console.print(f"[dim]By accident, {len(hidden)} legacy objects are lost. This has not been noticed yet.[/]")
        _head(console, f"{workers} workers migrate, and one of them is killed (SIGKILL)")
        # The missing objects make the exit status 1.
        log = ("--log-file", str(environment.folder / "migrate.log"))
        kill = partial(_kill_a_worker, console, environment) if workers > 1 else None
        _run("migrate", "--yes", "--processes", str(workers), hidden=log, expected=(0, 1), meanwhile=kill)
        _head(console, "What went wrong?")
        _run("errors")
        for key, content in hidden.items():
            s3.put_object(Bucket=bucket, Key=key, **content)
        console.print("[dim]The lost objects are found and put back. The batches go back into the queue:[/]")
        _run("requeue", "--all")
        _head(console, "The rest")
        _run("worker", "--until-empty", hidden=("--processes", "1", "--log-format", "text"))
        passed = _audit(console, plan)
        console.print(f"\n[dim]The demo took {time.monotonic() - began:.0f} s.[/]")
        _say_what_is_next(console)
    return 0 if passed else 1


def _head(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{title}", align="left", style="cyan"))


def _run(
    *arguments: str,
    hidden: tuple[str, ...] = (),
    expected: tuple[int, ...] = (0,),
    meanwhile: Callable[[subprocess.Popen[bytes]], object] | None = None,
) -> None:
    """Show a command as a user would type it, and run it, with `hidden` arguments as well.

    Raises RowferryError when it ends otherwise than expected.
    """
    shown = shlex.join(arguments)
    click.secho(f"$ rowferry {shown}", bold=True)
    with subprocess.Popen([sys.executable, "-m", "rowferry_cli", *arguments, *hidden]) as process:
        if meanwhile is not None:
            meanwhile(process)
    if process.returncode not in expected:
        raise RowferryError(
            f"`rowferry {shown}` ended with exit status {process.returncode}, which the demo did not expect."
        )


def _kill_a_worker(console: Console, environment: Environment, migrating: subprocess.Popen[bytes]) -> None:
    """Kill one worker once it has done a part of a batch, and say so; the S3 server is slow while batches run."""
    migration, worker = {"migration": environment.plan.name}, None
    with connect("demo", autocommit=True) as connection:
        while not (worker and worker["is_busy"]) and migrating.poll() is None:
            time.sleep(LOOK_EVERY_SECONDS)
            with suppress(*NOT_YET):
                before, worker = worker, connection.execute(statement("busy_worker"), migration).fetchone()
                if worker and not before:
                    environment.s3_server.set_latency(LATENCY)
    if worker and worker["is_busy"]:
        os.kill(worker["pid"], signal.SIGKILL)
        if console.is_terminal:
            console.file.write("\r\x1b[2K")  # the progress bar, which is drawn again below
        dead = f"kill -9 {worker['pid']}: a worker dies in the middle of batch {worker['batch_id']}"
        console.print(f"[yellow]⚡ {dead}[/]")
        time.sleep(SLOW_SECONDS)
    environment.s3_server.set_latency(timedelta(0))


def _hide_objects(s3: Any, bucket: str) -> dict[str, dict[str, Any]]:
    """Delete some legacy objects that rows point at, and return what is needed to put them back."""
    hidden: dict[str, dict[str, Any]] = {}
    for item in s3.list_objects_v2(Bucket=bucket, Prefix="image/", MaxKeys=HIDDEN_OBJECTS)["Contents"]:
        found = s3.get_object(Bucket=bucket, Key=item["Key"])
        hidden[item["Key"]] = {"Body": found["Body"].read(), "ContentType": found["ContentType"]}
        s3.delete_object(Bucket=bucket, Key=item["Key"])
    return hidden


def _audit(console: Console, plan: Plan) -> bool:
    """Check every row against the buckets, and the counts against each other."""
    _head(console, "The audit: every row, every object")
    with closing(open_object_client(plan.production)) as client:
        existing = {key for keys in list_pages(client.ask, "production") for key in keys}
    with connect("demo", autocommit=True) as connection:
        legacy = read_data_status(connection, plan, count_objects=False).entries["legacy"]
        keys = [row["path"] for row in connection.execute(statement("demo_keys"))]
        counts = read_counts(connection, plan.name, MIGRATE.name)
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


def _say_what_is_next(console: Console) -> None:
    """Print what to type for buckets of one's own, where rowferry is not on the PATH with its environment first."""
    _head(console, "Your own database and buckets")
    console.print("[dim]Set DATABASE_URL and the credentials of both sides (README.md, Write a plan). Then:[/]")
    activate = [] if shutil.which("rowferry") else [f". {shlex.quote(sys.prefix)}/bin/activate"]
    for command in (*activate, *NEXT):
        console.print(f"[bold]$ {command}[/]", soft_wrap=True)
