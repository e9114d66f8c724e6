"""First that of the tables, then that of the write-ahead log."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.server_process import choose_account
from support.processes.processes import is_running, wait_for
from torture.run import Run
from torture.standby import execute
from torture.workers import WorkerPool
from torture.world import World

WHAT = "The disk of the tables is full, then that of the write-ahead log (PostgreSQL panics), and there is space again"

FAULTS = frozenset({"full disks", "PANIC"})

SEATS = 3
DISK_BYTES = 96 * 1024 * 1024
NO_SPACE = "No space left on device"
SEEN_BY_WORKERS = 5
"""So many of their statements have to fail before there is space again."""
WITHIN = timedelta(seconds=120)
SETTINGS = {"min_wal_size": "32MB", "max_wal_size": "32MB", "wal_recycle": "off"}
DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"


def torture(run: Run) -> None:
    """Fill both disks, one after the other, while workers run."""
    if reason := why_not():
        run.skipped.append(reason)
        return
    entries = 600 if run.short else 3000
    with ExitStack() as until:
        tables, wal = until.enter_context(small_disk()), until.enter_context(small_disk())
        postgres = until.enter_context(EmbeddedPostgres(settings=SETTINGS))
        move_wal(postgres, wal)
        execute(postgres, f"create tablespace small location '{tables}'", "create database small tablespace small")
        world = until.enter_context(run.world(postgres=postgres, dsn=postgres.dsn("small")))
        world.fill(entries, large=2)
        world.enqueue(10)
        with world.workers(SEATS, "--parallel=4") as pool:
            wait_for_progress(world)
            fill_tables(run, pool, tables)
            wait_for_progress(world)
            fill_wal(run, world, wal)
            world.wait_until_done()
            assert pool.stop() == [0] * SEATS
            for death in pool.deaths:
                world.auditor.report(f"a worker died of it: {death}")
        world.run_final_checks()


def why_not() -> str | None:
    """Return why there can be no small disk here; None when there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux mounts a small disk"
    try:
        with small_disk():
            return None
    except (OSError, subprocess.CalledProcessError):
        return "this machine allows no mount of a small disk"


@contextmanager
def small_disk() -> Iterator[Path]:
    """Yield a folder on a disk of its own, which PostgreSQL may write to."""
    with TemporaryDirectory(prefix="rowferry-disk-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder) / "disk"
        disk.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", disk], check=True, capture_output=True
        )
        try:
            account = choose_account()
            assert account is not None
            (disk / "files").mkdir(mode=0o700)
            os.chown(disk / "files", account.pw_uid, account.pw_gid)
            yield disk / "files"
        finally:
            subprocess.run(["umount", disk], check=True, capture_output=True)


def move_wal(postgres: EmbeddedPostgres, disk: Path) -> None:
    """Put the write-ahead log on a disk of its own, as `initdb --waldir` would."""
    postgres.stop()
    wal = postgres.folder / "data" / "pg_wal"
    shutil.copytree(wal, disk / "pg_wal")
    shutil.rmtree(wal)
    wal.symlink_to(disk / "pg_wal")
    account = choose_account()
    assert account is not None
    for path in (disk / "pg_wal", *(disk / "pg_wal").rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
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


def fill_tables(run: Run, pool: WorkerPool, disk: Path) -> None:
    """Fill the disk of the tables until workers have felt it."""
    run.say("no space for tables")
    with no_space(disk):
        wait_for(lambda: pool.logs().count(NO_SPACE) >= SEEN_BY_WORKERS, deadline=WITHIN)
    run.faults["full disks"] += 1


def fill_wal(run: Run, world: World, disk: Path) -> None:
    """Fill the disk of the write-ahead log until PostgreSQL panics; start it when there is space again."""
    run.say("no space for the write-ahead log")
    with no_space(disk):
        wait_for(lambda: panics(world.postgres), deadline=WITHIN)
    if not is_running(world.postgres.pid):
        world.postgres.restart()
    run.faults["full disks"] += 1
    run.faults["PANIC"] += server_log(world.postgres).count("PANIC:")


def panics(postgres: EmbeddedPostgres) -> bool:
    """Use the log up; return whether PostgreSQL has panicked for want of space."""
    with suppress(psycopg.OperationalError):
        execute(postgres, "select pg_logical_emit_message(true, 'torture', 'x')", "select pg_switch_wal()")
    return any("PANIC:" in line and NO_SPACE in line for line in server_log(postgres).splitlines())


def server_log(postgres: EmbeddedPostgres) -> str:
    return (postgres.folder / "server.log").read_text(errors="replace")


def wait_for_progress(world: World) -> None:
    """Return when batches are done that were not done before."""
    done = world.ask(DONE)
    wait_for(lambda: world.ask(DONE) > done, deadline=WITHIN)
