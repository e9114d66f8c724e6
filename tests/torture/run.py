"""One run of one scenario: its seed and length, and what is counted on the way."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import MotoServer, S3Server
from support.entries.migration import Migration
from support.postgres.ordinary import SUPERUSER, add_owner
from support.postgres.servers import make_schema, temporary_folders_in_memory
from support.s3.buckets import Buckets, S3Access, VersityInMemory, find_versitygw
from torture.auditor import Auditor
from torture.oracle import Oracle
from torture.world import World

WITHOUT_VERSITYGW = "versitygw is not here: against moto, which checks neither signatures nor checksums"


def say_nothing(_: str) -> None:
    """Take progress without showing it."""


@dataclass
class Run:
    """What a scenario is given; it counts its faults, its worlds count the rest."""

    name: str
    seed: int
    short: bool = False
    """Well under a minute on a quiet machine, as `make test-all` wants it."""
    say: Callable[[str], None] = say_nothing
    """Shows one line of progress."""
    promised: Collection[str] = ()
    """Kinds of faults of which each run of the scenario sees one at least, however slow the machine is."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that came to pass, by kind ("SIGKILL"): seen at a server, at a proxy, in the ledger, never only meant."""
    entries: int = 0
    audits: int = 0
    violation_count: int = 0
    violations: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    """What a scenario has measured, a line each."""
    skipped: list[str] = field(default_factory=list)
    """What could not be done here, and why."""
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.name} {self.seed}")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def was_skipped(self) -> bool:
        """Return whether nothing at all was done."""
        return bool(self.skipped) and not self.entries

    @property
    def missing(self) -> list[str]:
        """Return the kinds of faults that were promised and never came: a run without them proves nothing."""
        return [] if self.was_skipped else [kind for kind in sorted(self.promised) if not self.faults[kind]]

    @property
    def failed(self) -> bool:
        """Return whether anything was violated, or was to be proved and was not."""
        return bool(self.violation_count or self.missing)

    @contextmanager
    def world(self, **options: Any) -> Iterator[World]:
        """Yield a world (`make_world` names the options); what its auditor saw is added to the run."""
        if find_versitygw() is None and WITHOUT_VERSITYGW not in self.skipped:
            self.skipped.append(WITHOUT_VERSITYGW)
        with make_world(self.random.randrange(2**32), **options) as world:
            try:
                yield world
            finally:
                world.auditor.end()
                self.entries += world.entries
                self.audits += world.auditor.audits
                self.violation_count += world.auditor.count
                self.violations += world.auditor.violations

    def as_row(self, what: str) -> str:
        """Return the run's line of the table in docs/internals/torture.md."""
        faults = [f"{count:,} {kind}" for kind, count in sorted(self.faults.items()) if count]
        numbers = (f"{number:,}" for number in (self.entries, self.audits, self.violation_count, round(self.seconds)))
        return f"| {' | '.join([self.name, what, ', '.join(faults), *numbers, str(self.seed)])} |"


PART_BYTES = 5 * 1024 * 1024
"""The least that S3 takes for a part: what is larger travels part by part, in every scenario."""


@contextmanager
def make_world(
    seed: int,
    *,
    postgres: EmbeddedPostgres | None = None,
    dsn: str | None = None,
    settings: Mapping[str, str] | None = None,
    plan: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[World]:
    """Yield a world without entries, its auditor at work; everything of it is ended and removed afterwards.

    `postgres` is a running server of the scenario's own, `dsn` a way to its database for workers and auditor alike;
    left out, the world has its own server, with `settings`. `plan` is laid over the plan, table by table
    (`{"migration": {"transfer": "stream"}}`).
    """
    with ExitStack() as until:
        if postgres is None:
            with temporary_folders_in_memory():
                postgres = until.enter_context(EmbeddedPostgres(user=SUPERUSER, settings=settings))
                dsn = add_owner(postgres)
        dsn = dsn or postgres.dsn()
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-torture-")))
        make_schema(dsn)
        s3 = until.enter_context(make_s3_server())
        buckets = make_buckets(s3, until)
        migration = until.enter_context(closing(Migration(dsn, buckets, buckets, folder)))
        migration.plan["migration"]["multipart_threshold_bytes"] = PART_BYTES
        for name, table in (plan or {}).items():
            migration.plan.setdefault(name, {}).update(table)
        oracle = Oracle()
        auditor = Auditor(dsn, s3, migration.legacy, migration.production, oracle, seed=seed)
        until.enter_context(auditor)
        yield World(seed, folder, postgres, s3, migration, oracle, auditor)


def make_s3_server() -> S3Server:
    """Return versitygw, which checks signatures and digests, or moto where there is no versitygw."""
    program = find_versitygw()
    return VersityInMemory(program) if program else MotoServer()


def make_buckets(server: S3Server, until: ExitStack) -> Buckets:
    access = until.enter_context(closing(S3Access(server)))
    buckets = Buckets(server, access, "legacy", "production")
    for name in (buckets.legacy, buckets.production):
        access.quick.create_bucket(name)
    return buckets
