"""PostgreSQL has no space left, and panics; it crashes, and its streaming standby takes its place."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import psycopg

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.server_process import choose_account
from support.processes.processes import is_running
from torture.final_checks import Expected
from torture.scenarios.scenario import Scenario, Size
from torture.standby import cut_off, dsn_of_both, execute, make_standby, promote, wait_for_standby
from torture.world import World

DISK_BYTES = 96 * 1024 * 1024
NO_SPACE = "No space left on device"
SEEN_BY_WORKERS = 5
"""So many of their statements have to fail before there is space again."""
DONE = "select coalesce(array_agg(id), '{}') from rowferry.batch_queue where status = 'DONE'"


class Disk(Scenario):
    what = (
        "The disk of the tables is full, then that of the write-ahead log (PostgreSQL panics), and there is space again"
    )
    faults = frozenset({"full disks", "PANIC"})
    short, long = Size(1, 600, seats=3), Size(1, 3000, seats=3)
    within = timedelta(seconds=120)
    batch = 10
    arguments = ("--parallel=4",)
    settings: ClassVar = {"min_wal_size": "32MB", "max_wal_size": "32MB", "wal_recycle": "off"}

    def why_not(self) -> str | None:
        if sys.platform != "linux" or os.geteuid() != 0:
            return "only root on Linux mounts a small disk"
        try:
            with small_disk():
                return None
        except (OSError, subprocess.CalledProcessError):
            return "this machine allows no mount of a small disk"

    def build(self, until: ExitStack) -> World:
        self.tables, self.wal = until.enter_context(small_disk()), until.enter_context(small_disk())
        postgres = until.enter_context(EmbeddedPostgres(settings=self.settings))
        move_wal(postgres, self.wal)
        execute(postgres, f"create tablespace small location '{self.tables}'", "create database small tablespace small")
        return until.enter_context(self.run.world(postgres=postgres, dsn=postgres.dsn("small")))

    def cause(self) -> None:
        """Fill the disk of the tables until workers have felt it, then that of the log until PostgreSQL panics."""
        self.wait_for_progress()
        self.say("no space for tables")
        with no_space(self.tables):
            self.wait_for(lambda: self.pool.logs().count(NO_SPACE) >= SEEN_BY_WORKERS)
        self.count("full disks")
        self.wait_for_progress()
        self.say("no space for the write-ahead log")
        with no_space(self.wal):
            self.wait_for(self.panics)
        if not is_running(self.world.postgres.pid):
            self.world.postgres.restart()
        self.count("full disks")
        self.count("PANIC", self.world.server_log().count("PANIC:"))

    def panics(self) -> bool:
        """Use the log up; return whether PostgreSQL has panicked for want of space."""
        with suppress(psycopg.OperationalError):
            statements = "select pg_logical_emit_message(true, 'torture', 'x')", "select pg_switch_wal()"
            execute(self.world.postgres, *statements)
        return any("PANIC:" in line and NO_SPACE in line for line in self.world.server_log().splitlines())


@contextmanager
def small_disk() -> Iterator[Path]:
    """Yield a folder on a disk of its own, which PostgreSQL may write to."""
    with TemporaryDirectory(prefix="rowferry-disk-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder) / "disk"
        disk.mkdir()
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], check=True, capture_output=True)
        try:
            (disk / "files").mkdir(mode=0o700)
            give_to_postgres(disk / "files")
            yield disk / "files"
        finally:
            subprocess.run(["umount", disk], check=True, capture_output=True)


def give_to_postgres(*paths: Path) -> None:
    account = choose_account()
    assert account is not None
    for path in paths:
        os.chown(path, account.pw_uid, account.pw_gid)


def move_wal(postgres: EmbeddedPostgres, disk: Path) -> None:
    """Put the write-ahead log on a disk of its own, as `initdb --waldir` would."""
    postgres.stop()
    wal = postgres.folder / "data" / "pg_wal"
    shutil.copytree(wal, disk / "pg_wal")
    shutil.rmtree(wal)
    wal.symlink_to(disk / "pg_wal")
    give_to_postgres(disk / "pg_wal", *(disk / "pg_wal").rglob("*"))
    postgres.start()


@contextmanager
def no_space(disk: Path) -> Iterator[None]:
    """Leave not a byte on the disk meanwhile."""
    balloon = disk.parent / "balloon"
    with balloon.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            with suppress_full_disk():
                while True:
                    file.write(bytes(size))
    try:
        yield
    finally:
        balloon.unlink()


@contextmanager
def suppress_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


class Failover(Scenario):
    what = "The primary crashes, its streaming standby is promoted: synchronous first, then one that had fallen behind"
    faults = frozenset({"failovers"})
    forms, short_forms = ("synchronous", "fallen behind"), 1
    short, long = Size(1, 400), Size(1, 2000)
    within = timedelta(seconds=120)
    batch = 10

    @property
    def is_synchronous(self) -> bool:
        """Return whether nothing acknowledged may be lost; else something must be."""
        return self.form == "synchronous"

    def build(self, until: ExitStack) -> World:
        self.primary = until.enter_context(EmbeddedPostgres())
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-standby-")))
        self.standby = until.enter_context(make_standby(self.primary, folder))
        dsn = dsn_of_both(self.primary, self.standby)
        world = until.enter_context(self.run.world(postgres=self.primary, dsn=dsn))
        wait_for_standby(self.primary, synchronous=self.is_synchronous)
        return world

    def cause(self) -> None:
        """Crash the primary, promote the standby, and look at what it knows of what was done."""
        self.wait_until_done_are(self.entries // self.batch // 4)
        if not self.is_synchronous:
            cut_off(self.primary, self.standby)
            self.wait_until_done_are(self.entries // self.batch // 2)
        done = set(self.world.ask(DONE))
        assert self.world.waiting(), "all was done before the crash: nothing was proved"
        self.primary.stop(signal.SIGQUIT)
        promote(self.standby)
        self.count("failovers")
        forgotten = len(done - set(self.world.ask(DONE)))
        self.say(f"failed over; {forgotten} batches that were DONE are to be done again")
        if self.is_synchronous and forgotten:
            self.report(f"{forgotten} batches were DONE and are not any more")
        if not self.is_synchronous:
            assert forgotten, "the standby had not fallen behind: nothing was proved"
            self.count("batches lost by the standby", forgotten)

    def wait_until_done_are(self, batches: int) -> None:
        self.wait_for(lambda: len(self.world.ask(DONE)) >= batches)

    def expect(self) -> Expected:
        return Expected(ledger_went_back=not self.is_synchronous)
