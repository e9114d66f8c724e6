"""A private PostgreSQL server: created, started, stopped and removed by this process."""

import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from rowferry_lab.servers.postgres_programs import (
    check_enterable,
    choose_postgres_binaries,
    make_cluster,
    make_reachable,
)
from rowferry_lab.servers.server_process import OwnServer, ServerProcess, choose_account, find_free_port

START_DEADLINE = timedelta(seconds=120)

THROWAWAY_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "jit": "off",
}
"""For throw-away data: a crash of the machine may damage it; a crash of the server loses no commit."""

StopMode = Literal["fast", "immediate"]
STOP_SIGNALS: dict[StopMode, signal.Signals] = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class EmbeddedPostgres(OwnServer):
    """A server on a free port of 127.0.0.1 and a unix socket in its folder, with one superuser and a password.

    Use it as a context manager, or call `start` and `stop`. Run as root, the server runs as `nobody`.
    """

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
        self.user = user
        self.password = password or secrets.token_urlsafe(16)
        self.port = 0
        """Chosen at the first start and kept from then on."""
        self._settings = {**THROWAWAY_SETTINGS, **(settings or {})}
        self._account = choose_account()
        self._binaries = binaries or choose_postgres_binaries()
        self._programs = self._binaries
        """The same, or a copy of them that the account can run."""
        self._folder = folder and folder.absolute()
        self._temporary = folder is None
        self._process: ServerProcess | None = None

    @property
    def folder(self) -> Path:
        """Return the folder of data, log and socket, which is made when it is first asked for."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rowferry-postgres-"))
        return self._folder

    def dsn(self, database: str = "postgres") -> str:
        """Return a URL of a database over TCP, with user and password, as DATABASE_URL takes it."""
        user, password, name = (quote(word, safe="") for word in (self.user, self.password, database))
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Make the database cluster if there is none, start the server, and return when it takes connections.

        Raises ServerFailed with the server's last words, and leaves nothing running then.
        """
        for last_try in (True,) if self.port else (False, False, True):
            try:
                self._prepare()
                self._start_on(self.port or find_free_port())
            except BaseException as error:
                self.close()
                if last_try or "Address already in use" not in str(error):
                    raise
            else:
                return

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server, `fast` in order, `immediate` as a crash would; nothing happens when it is stopped."""
        if self._process is not None:
            self._process.stop(STOP_SIGNALS[mode])
            self._process = None

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start on the same port with the same data."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server, and remove the data if the folder was not given by the caller."""
        self.stop()
        if self._temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _prepare(self) -> None:
        """Make the folder, see that the account can run the programs, and make the cluster if there is none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._account:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        check_enterable(self.folder, self._account)
        self._programs = make_reachable(self._binaries, self._account, self.folder)
        if not (self.folder / "data" / "PG_VERSION").exists():
            make_cluster(self._programs, self.folder, self._account, user=self.user, password=self.password)

    def _start_on(self, port: int) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "..",  # of the data: its folder, by a path that is never too long
            **self._settings,
        }
        self._process = ServerProcess(
            [str(self._programs / "postgres"), "-D", "data", *(f"--{name}={value}" for name, value in options.items())],
            folder=self.folder,
            account=self._account,
            environment={"LC_ALL": "C"},
            death_signal=signal.SIGINT,
            temporary=self._temporary,
        )
        self._process.wait_until(self._says_ready, deadline=START_DEADLINE)
        self.port = port

    def _says_ready(self) -> bool:
        """Return whether the server's own pid file says that it takes connections; `pg_ctl --wait` reads the same.

        A standby says so in a word of its own.
        """
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() in {"ready", "standby"}
