"""Commits that wait for a synchronous standby are named on every screen."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry_cli.migrate import passes
from rowferry_cli.status.standby import describe_standby_wait
from rowferry_cli.watch.hold_ups import list_hold_ups
from rowferry_cli.watch.snapshot import read_snapshot
from support.entries.migration import Migration
from support.postgres.ordinary import administrator, as_owner, ordinary_postgres
from support.postgres.servers import make_schema
from support.processes.cli import well
from support.processes.processes import wait_for
from support.s3.buckets import Buckets

WAITS = "commit waits for a synchronous standby, for "
WHAT_TO_DO = "start the standby, or take it out of synchronous_standby_names"


@pytest.fixture
def waiting(moto_buckets: Buckets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Migration]:
    """A migration in a database whose synchronous standby is gone, and a commit that waits for it."""
    with ordinary_postgres() as primary:
        dsn = as_owner(primary.dsn())
        make_schema(dsn)
        with closing(Migration(dsn, moto_buckets, moto_buckets, tmp_path)) as migration:
            for name, value in migration.environment.items():
                monkeypatch.setenv(name, value)
            migration.given(2).write_plan()
            with administrator(primary.dsn()) as superuser:
                superuser.execute("alter system set synchronous_standby_names = 'gone'")
                superuser.execute("select pg_reload_conf()")
                is_over = Event()
                thread = Thread(target=commit_until_one_waits, args=(dsn, is_over))
                thread.start()
                try:
                    yield migration
                finally:
                    is_over.set()
                    superuser.execute("alter system reset synchronous_standby_names")
                    superuser.execute("select pg_reload_conf()")
                    thread.join(30)
                    assert not thread.is_alive()


def commit_until_one_waits(dsn: str, is_over: Event) -> None:
    """Commit again and again: the first commit after the server has heard of the standby waits until the test ends."""
    with psycopg.connect(dsn, autocommit=True) as session:
        while not is_over.wait(0.05):
            session.execute("create table public.new ()")
            session.execute("drop table public.new")


def test_the_status_and_watch_name_the_standby(waiting: Migration) -> None:
    with connect("test", autocommit=True) as connection:
        wait_for(lambda: bool(describe_standby_wait(connection)))
        snapshot = read_snapshot(connection, "avatars")
    assert any(WAITS in line and WHAT_TO_DO in line for line in list_hold_ups(snapshot, snapshot.queues[0]))
    done = waiting.run_here("status")
    assert f"1 {WAITS}" in done.stdout, done.stdout + done.stderr
    assert WHAT_TO_DO in done.stdout


def test_a_run_names_the_standby(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    migration.fill(3).write_plan()
    said = iter([f"1 {WAITS}3 s so far", ""])
    monkeypatch.setattr(passes, "describe_standby_wait", lambda _connection: next(said, ""))
    assert f"done, 1 {WAITS}3 s so far" in well(migration.run_here("migrate", "--yes", "--no-objects")).stdout
