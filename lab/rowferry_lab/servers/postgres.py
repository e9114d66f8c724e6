"""A private PostgreSQL server: created, started, stopped and removed by this process."""

import os
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from rowferry_lab.servers.postgres_programs import (
    check_enterable,
    choose_postgres_binaries,
    make_cluster,
    make_reachable,
)
from rowferry_lab.servers.server_process import START_DEADLINE, OwnServer, ServerProcess, choose_account

THROWAWAY_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "jit": "off",
}
"""For throw-away data: a crash of the machine may damage it; a crash of the server loses no commit."""


class EmbeddedPostgres(OwnServer):
    """A server on a free port of 127.0.0.1 and a unix socket in its folder, with one superuser and a password.

    Run as root, the server runs as `nobody`.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # a "fast" shutdown; SIGQUIT stops it as a crash would

    def __init__(
        self,
        folder: Path | None = None,
        *,
        binaries: Path | None = None,
        user: str = "rowferry",
        password: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Choose without starting anything.

        `folder` keeps the data for the next start; None means a temporary one. `binaries` is the folder that holds
        `initdb` and `postgres`, the embedded ones if None. `password` None means a random one. `settings` come on top
        of THROWAWAY_SETTINGS. Raises UsageError when there is no PostgreSQL, or no account to run it as.
        """
        super().__init__(folder)
        self.user = user
        self.password = password or secrets.token_urlsafe(16)
        self._settings = {**THROWAWAY_SETTINGS, **(settings or {})}
        self._account = choose_account()
        self._binaries = binaries or choose_postgres_binaries()

    def dsn(self, database: str = "postgres") -> str:
        """Return a URL of a database over TCP, with user and password, as DATABASE_URL takes it."""
        user, password, name = (quote(word, safe="") for word in (self.user, self.password, database))
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{name}"

    def start_on(self, port: int) -> None:
        """See that the account can run the programs, make the cluster if there is none, and start the server."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        check_enterable(self.folder, self._account)
        programs = make_reachable(self._binaries, self._account, self.folder)
        if not (self.folder / "data" / "PG_VERSION").exists():
            make_cluster(programs, self.folder, self._account, user=self.user, password=self.password)
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "..",  # of the data: its folder, by a path that is never too long
            **self._settings,
        }
        self._process = ServerProcess(
            [str(programs / "postgres"), "-D", "data", *(f"--{name}={value}" for name, value in options.items())],
            folder=self.folder,
            account=self._account,
            environment={"LC_ALL": "C"},
            death_signal=self.stop_signal,
            temporary=self._is_temporary,
        )
        self._process.wait_until(self._says_ready, deadline=START_DEADLINE)

    def _says_ready(self) -> bool:
        """Return whether the server's own pid file says that it takes connections; `pg_ctl --wait` reads the same.

        A standby says so in a word of its own.
        """
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() in {"ready", "standby"}
