"""Everything that others can read of a migration, place by place, and a search for secrets in it."""

import base64
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock
from urllib.parse import quote, quote_plus

import psycopg
from psycopg import sql

from support.processes.processes import meanwhile

LOOK_EVERY_SECONDS = 0.1
TABLES = """
select c.relname from pg_class as c inner join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'rowferry' and c.relkind in ('r', 'p', 'v', 'm') order by c.relname
"""


def forms_of(secret: str) -> set[str]:
    """Return a secret as it may look after it was quoted, escaped or encoded."""
    encoded = secret.encode()
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms |= {repr(secret)[1:-1], encoded.hex(), base64.b64encode(encoded).decode().rstrip("=")}
    return forms | {base64.urlsafe_b64encode(encoded).decode().rstrip("=")}


class SecretScanner:
    """What was seen, by place."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = defaultdict(set)
        self._turn = Lock()

    def add(self, place: str, text: str) -> None:
        """Note what was seen at a place; the place is known from then on, even if nothing was there."""
        with self._turn:
            self._seen[place].add(text)

    def _places(self) -> list[tuple[str, list[str]]]:
        """Return what was seen so far, while others go on adding to it."""
        with self._turn:
            return [(name, sorted(texts)) for name, texts in sorted(self._seen.items())]

    def text(self, place: str) -> str:
        """Return all that was seen at the places whose names begin so."""
        return "\n".join(text for name, texts in self._places() if name.startswith(place) for text in texts)

    def find(self, secrets: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return where a secret was seen, and which, in whatever form."""
        return [
            (place, name)
            for place, texts in self._places()
            for name, secret in sorted(secrets.items())
            if any(form in text for form in forms_of(secret) for text in texts)
        ]

    # The places

    def add_tables(self, dsn: str) -> None:
        """Add every row of every table and view of the schema, and whatever the catalogue says of roles."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            names = [name for (name,) in connection.execute(TABLES.encode())]
            for name in names:
                rows = connection.execute(sql.SQL("select t::text from rowferry.{} as t").format(sql.Identifier(name)))
                self.add(f"table {name}", "\n".join(row for (row,) in rows))
            for catalogue in ("pg_roles", "pg_shdescription", "pg_description", "pg_db_role_setting"):
                rows = connection.execute(sql.SQL("select t::text from {} as t").format(sql.Identifier(catalogue)))
                self.add(f"table {catalogue}", "\n".join(row for (row,) in rows))

    def add_files(self, folder: Path, place: str = "file") -> None:
        """Add every file below a folder."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.add(f"{place} {path.relative_to(folder)}", path.read_bytes().decode("utf-8", "replace"))

    def add_processes(self) -> None:
        """Add the command line and the title of every process; what is in its environment is its own affair."""
        for process in Path("/proc").glob("[0-9]*"):  # one that ends meanwhile makes a longer pattern fail
            for name in ("cmdline", "comm"):
                with suppress(OSError):
                    text = (process / name).read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    self.add(f"process {name}", text)

    def add_activity(self, connection: psycopg.Connection[tuple[str]]) -> None:
        """Add what the server tells everybody about its sessions: names, queries, where they come from."""
        for (row,) in connection.execute("select a::text from pg_stat_activity as a"):
            self.add("activity", row)

    @contextmanager
    def watching(self, dsn: str) -> Iterator[None]:
        """Look at processes and sessions again and again while the block runs."""

        def look(over: Event) -> None:
            with psycopg.connect(dsn, autocommit=True, application_name="the watcher") as connection:
                while not over.wait(LOOK_EVERY_SECONDS):
                    self.add_activity(connection)
                    if sys.platform == "linux":
                        self.add_processes()

        with meanwhile(look):
            yield
