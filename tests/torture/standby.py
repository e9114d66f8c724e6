"""A streaming standby of a PostgreSQL that the harness runs."""

import os
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import choose_postgres_binaries, make_reachable, run_program
from rowferry_lab.servers.server_process import choose_account
from support.processes.processes import wait_for

STREAMING_WITHIN = timedelta(seconds=60)
STREAMING = "select coalesce(string_agg(sync_state, ' '), 'none') from pg_stat_replication where state = 'streaming'"


def make_standby(primary: EmbeddedPostgres, folder: Path) -> EmbeddedPostgres:
    """Copy a running primary into an empty folder, where the standby will keep its data; it is to be started yet."""
    account = choose_account()
    folder.chmod(0o755)
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    programs = make_reachable(choose_postgres_binaries(), account, folder)
    standby = EmbeddedPostgres(folder, user=primary.user, password=primary.password)
    run_program(
        programs / "pg_basebackup",
        *("--pgdata=data", "--wal-method=stream", "--checkpoint=fast", "--write-recovery-conf", "--no-sync"),
        *("--dbname", primary.dsn()),
        account=account,
        folder=folder,
    )
    return standby


def dsn_of_both(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> str:
    """Return the DSN that leads to whichever of the two takes writes."""
    login = f"{primary.user}:{quote(primary.password, safe='')}"
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://{login}@{hosts}/postgres?target_session_attrs=read-write"


def wait_for_standby(primary: EmbeddedPostgres, *, synchronous: bool) -> None:
    """Return when the standby streams; with `synchronous` no COMMIT is answered from then on before it is there too."""
    if synchronous:
        execute(primary, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
    wanted = "sync" if synchronous else "async"
    wait_for(lambda: ask(primary, STREAMING) == wanted, deadline=STREAMING_WITHIN)


def cut_off(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> None:
    """Let the standby fall behind from now on, as a broken line between the two would."""
    execute(standby, "alter system set primary_conninfo = ''", "select pg_reload_conf()")
    wait_for(lambda: ask(primary, STREAMING) == "none", deadline=STREAMING_WITHIN)


def promote(standby: EmbeddedPostgres) -> None:
    """Make the standby a primary; return when it is one."""
    assert ask(standby, "select pg_promote(wait => true, wait_seconds => 60)")


def ask(server: EmbeddedPostgres, query: str) -> object:
    with closing(psycopg.connect(server.dsn(), autocommit=True)) as connection:
        (value,) = connection.execute(query.encode()).fetchone() or (None,)
    return value


def execute(server: EmbeddedPostgres, *statements: str) -> None:
    with closing(psycopg.connect(server.dsn(), autocommit=True)) as connection:
        for statement in statements:
            connection.execute(statement.encode())
