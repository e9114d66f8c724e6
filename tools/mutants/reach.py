"""Which test reaches which line of the mutated files, and which SQL functions: seen in the run without a mutant."""

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

Reached = dict[str, list[int]]
"""The lines that a test has run of each file, and `rowferry.<function>` with none."""

RAISED = re.compile(rb"function (rowferry\.\w+)\(")
"""What the log says of each function that an error has passed through: PostgreSQL does not count such calls."""

SESSIONS_SECONDS = 5
"""How long the sessions of a test may take to end: PostgreSQL adds up a session's calls when it ends."""
SESSIONS = """
select from pg_stat_activity
where datname = current_database() and usesysid is not null and pid <> pg_backend_pid()
"""
CALLED = "select schemaname || '.' || funcname from pg_stat_user_functions where calls > 0"


class Reach:
    """Sees the lines of some files that run, on all threads that are started from now on."""

    def __init__(self, files: list[str]) -> None:
        self._files = frozenset(files)
        self._lines: set[tuple[str, int]] = set()
        self._read_bytes: dict[Path, int] = {}
        self.functions: set[str] = set()

    def start(self) -> None:
        if self._files:
            threading.settrace(self._see_call)
            sys.settrace(self._see_call)

    def take(self) -> Reached:
        """Return what was reached since this was asked last."""
        lines, self._lines = self._lines, set()
        self._read_logs()
        functions, self.functions = self.functions, set()
        found: Reached = {name: [] for name in sorted(functions)}
        for file, line in sorted(lines):
            found.setdefault(file, []).append(line)
        return found

    def _see_call(self, frame: FrameType, event: str, argument: object) -> Any:
        del event, argument
        return self._see_line if frame.f_code.co_filename in self._files else None

    def _see_line(self, frame: FrameType, event: str, argument: object) -> Any:
        del argument
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._see_line

    def see_functions(self, servers: type[Any], logs: list[Path]) -> None:
        """Ask each database of a test, before it is dropped, which functions were called, and the logs for refusals."""
        self._read_bytes = {path: path.stat().st_size for path in logs}
        fresh = servers.fresh_database

        @contextmanager
        def fresh_database(own: Any, binaries: object) -> Iterator[str]:
            with fresh(own, binaries) as dsn:
                try:
                    yield dsn
                finally:
                    self._ask(dsn)

        servers.fresh_database = fresh_database

    def _ask(self, dsn: str) -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                limit = time.monotonic() + SESSIONS_SECONDS
                while connection.execute(SESSIONS).rowcount and time.monotonic() < limit:
                    time.sleep(0.01)
                self.functions |= {name for (name,) in connection.execute(CALLED)}
        except psycopg.Error:
            self.functions.add("unknown")

    def _read_logs(self) -> None:
        """Note the functions that the logs name since they were read last."""
        for path, read_bytes in self._read_bytes.items():
            with path.open("rb") as log:
                log.seek(read_bytes)
                text = log.read()
            self._read_bytes[path] = read_bytes + len(text)
            self.functions |= {name.decode() for name in RAISED.findall(text)}
