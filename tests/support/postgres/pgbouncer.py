"""A real PgBouncer in transaction mode before a test's database."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from itertools import takewhile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.processes.processes import wait_for
from support.s3.servers.own import find_low_port

PROGRAM = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
SETTINGS = """[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
auth_type = plain
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 50
ignore_startup_parameters = extra_float_digits
logfile = {folder}/pgbouncer.log
unix_socket_dir =
"""
SETTINGS_LEFT = "select name, setting from pg_settings where name <> 'application_name' and name not like 'plpgsql.%'"
"""But for the client's own name, and for those that come into being with the first function in PL/pgSQL."""


@contextmanager
def pgbouncer(database: str, folder: Path, pool_size: int) -> Iterator[str]:
    """Yield the DSN that leads through PgBouncer to the database; skip where there is no PgBouncer.

    Each slot of a worker holds a connection of its pool while it holds a batch, and the ledger needs one besides.
    """
    if PROGRAM is None:
        pytest.skip("pgbouncer is not here: Debian's package `pgbouncer` has it")
    target, port = conninfo_to_dict(database), find_low_port()  # that nobody connects from meanwhile
    (folder / "users.txt").write_text(f'"{target["user"]}" "{target["password"]}"\n')
    words = SETTINGS.format(host=target["host"], port=target["port"], own_port=port, folder=folder, pool_size=pool_size)
    (folder / "pgbouncer.ini").write_text(words)
    command = [PROGRAM, str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:
        own_folders = takewhile(lambda one: one != Path(tempfile.gettempdir()), folder.parents)
        for one in (folder, *own_folders):
            one.chmod(0o777)
        command[1:1] = ["-u", "nobody"]
    process = subprocess.Popen([*command, "-q"], stderr=subprocess.DEVNULL)
    dsn = make_conninfo(database, host="127.0.0.1", port=port)

    def is_ready() -> bool:
        try:
            psycopg.connect(dsn, connect_timeout=10).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        wait_for(is_ready, deadline=timedelta(seconds=20))
        yield dsn
    finally:
        process.terminate()
        process.wait(10)


def read_pool(dsn: str, pool_size: int) -> dict[int, dict[str, str]]:
    """Return, by process id, the settings that the next client finds in each session of the pool; of none of its own.

    Each is held in a transaction until all are.
    """
    with ExitStack() as until:
        found: dict[int, dict[str, str]] = {}
        for _ in range(pool_size):
            client = until.enter_context(psycopg.connect(dsn, prepare_threshold=None))
            found[client.execute("select pg_backend_pid()").fetchall()[0][0]] = dict(
                client.execute(SETTINGS_LEFT).fetchall()
            )
        return found
