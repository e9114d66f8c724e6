"""A new user's way, timed: from the clone to the migrated objects of a Discourse-like database.

`make new-user` types the commands of the README's quick start as they are written there, in an empty folder.
"""

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from corpus.application import Application
from corpus.discourse.project import Discourse
from rowferry_lab.servers.s3_servers import MotoServer
from support.docs.doc_pages import ROOT, read_blocks, read_section
from support.entries.discovering import Discovering
from support.postgres.servers import POSTGRES, DatabaseServers
from support.processes.processes import run_to_end
from support.s3.buckets import fresh_buckets
from torture.oracle import Oracle

README = ROOT / "README.md"
UPLOADS = 2000
MARK = "@@@ "
LONGEST = timedelta(minutes=15)


def read_installation() -> list[str]:
    """Return the commands from the clone to an installed rowferry."""
    (block,) = [one for one in read_blocks("sh", pages=[README]) if one.text in read_section(README, "1. Install")]
    return [f"git clone --quiet {shlex.quote(str(ROOT))} rowferry", "cd rowferry", *split_commands(block.text)]


def read_way() -> list[str]:
    """Return the commands from there to a migration."""
    sections = [read_section(README, heading) for heading in ("2. Write a plan", "3. Migrate")]
    blocks = [one for one in read_blocks("sh", pages=[README]) if any(one.text in section for section in sections)]
    return [command for block in blocks for command in split_commands(block.text)]


def split_commands(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def fill_in(commands: Iterable[str], world: Discovering) -> Iterator[str]:
    """Yield the commands with the user's own settings in the place of the page's."""
    own = iter([world.environment[name] for name in sorted(world.environment) if name.startswith("ROWFERRY_")])
    buckets = {"old-uploads": world.legacy.bucket, "new-uploads": world.production.bucket}
    for command in commands:
        filled = command.replace("postgresql://user:password@host:5432/database", world.dsn)
        filled = re.sub("…", lambda _: next(own), filled)
        yield re.sub(r"https://\S+/(\S+)", lambda found: world.url_of(buckets[found[1]]), filled)


def walk(
    commands: Sequence[str], world: Discovering, folder: Path, *, prelude: str = ""
) -> tuple[list[tuple[str, float]], str]:
    """Type the commands into one shell, with `y` to every question; return each with its seconds, and all output."""
    script = "\n".join([prelude, "set -e", *(f"{command}\necho '{MARK}'$(date +%s.%N)" for command in commands)])
    environment = {name: value for name, value in world.environment.items() if not name.startswith("ROWFERRY_")}
    began = time.time()
    done = run_to_end(
        ["bash", "-c", script],
        typed="y\n" * 5,
        deadline=LONGEST,
        env={**os.environ, **environment, "DATABASE_URL": ""},
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [float(line.removeprefix(MARK)) for line in done.stdout.splitlines() if line.startswith(MARK)]
    seconds = [end - start for start, end in pairwise([began, *ends])]
    return list(zip(commands, seconds, strict=True)), done.stdout


@contextmanager
def discourse_like(world: Discovering, uploads: int) -> Iterator[Application]:
    """Fill the database and the legacy bucket as Discourse does."""
    project = Discourse()
    world.execute((project.folder / "schema.sql").read_text())
    with closing(Application(world.dsn, project, world.legacy, Oracle())) as application:
        application.fill(uploads)
        yield application


def main() -> None:
    """Walk the whole way, and print what was typed and how long it took."""
    with ExitStack() as until:
        folder = Path(until.enter_context(TemporaryDirectory()))
        servers = DatabaseServers(until)
        dsn = until.enter_context(servers.fresh_database(POSTGRES))
        buckets = until.enter_context(fresh_buckets(until.enter_context(MotoServer())))
        world = Discovering(dsn, buckets, folder)
        world.execute("drop schema rowferry cascade")
        until.enter_context(discourse_like(world, UPLOADS))
        click.echo(f"A database like Discourse's: {UPLOADS:,} uploads and their smaller copies.")
        typed, _ = walk([*read_installation(), *fill_in(read_way(), world)], world, folder)
    for command, seconds in typed:
        words = command if len(command) < 90 else command[:87] + "..."
        click.echo(f"{seconds:7.1f} s  {'export ...' if words.startswith('export') else words}")
    minutes = sum(seconds for _, seconds in typed) / 60
    click.echo(f"{len(typed)} commands, {minutes:.1f} minutes.")


if __name__ == "__main__":
    main()
