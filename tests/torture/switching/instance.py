"""An instance of the application: it uploads, replaces in place and deletes, in short and in long transactions."""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread
from typing import LiteralString

import psycopg

from support.entries.entry_table import FROM, TO
from torture.switching.history import Entry, Histories, Table
from torture.world import World

LONGEST_PAUSE = timedelta(seconds=0.5)
WEIGHTS = (3, 6, 1)
"""How often it uploads, replaces and deletes."""
FIRST_OWN_ID = 1_000_000
INSERTS: dict[Table, LiteralString] = {
    "pictures": "insert into public.pictures values (%s, %s)",
    "files": "insert into public.files values (%s, %s, now())",
}
LOCKS: dict[Table, LiteralString] = {
    "pictures": "select path from public.pictures where id = %s for update",
    "files": "update public.files set updated_at = now() where id = %s returning path",
}
DELETES: dict[Table, LiteralString] = {
    "pictures": "delete from public.pictures where id = %s returning path",
    "files": "delete from public.files where id = %s returning path",
}
ROLLED_BACK = "uploads rolled back"


class RolledBack(Exception):
    """The application has thought better of it."""


class Instance:
    """One process of the application, with two threads: the transactions of one are short, of the other long.

    It runs the old version until it is told to flip; each thread flips when its transaction has ended.
    """

    def __init__(self, world: World, histories: Histories, seed: int, longest: timedelta) -> None:
        """`longest`: how long a transaction stays open, once it has put its object and before it ends."""
        self._world, self._histories = world, histories
        self._ended = Event()
        self.flip = Event()
        self.done: Counter[str] = Counter()
        self.fault: Exception | None = None
        self.orphans: set[str] = set()
        """Keys in the legacy bucket that no row has ever held: their uploads were rolled back."""
        chance = random.Random(seed)
        spans = (timedelta(seconds=0.1), longest)
        self._old = {number for number, _ in enumerate(spans)}
        self._threads = [
            Thread(target=self._run, args=[number, random.Random(chance.random()), span], daemon=True)
            for number, span in enumerate(spans)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self, within: timedelta) -> None:
        """End it, as soon as its transactions have ended."""
        self._ended.set()
        for thread in self._threads:
            thread.join(within.total_seconds())

    @property
    def has_flipped(self) -> bool:
        """Return whether all of it runs the new version."""
        return not self._old

    def _run(self, number: int, chance: random.Random, longest: timedelta) -> None:
        acts: tuple[Callable[..., None], ...] = (self._upload, self._replace, self._delete)
        try:
            with psycopg.connect(self._world.migration.dsn, application_name="application") as connection:
                connection.autocommit = True
                while not self._ended.wait(chance.uniform(0, LONGEST_PAUSE.total_seconds())):
                    if self.flip.is_set():
                        self._old.discard(number)
                    (act,) = chance.choices(acts, weights=WEIGHTS)
                    act(connection, chance, longest, is_old=number in self._old)
        except Exception as fault:  # noqa: BLE001 - it is raised again by the scenario
            self.fault = fault

    def _upload(
        self, connection: psycopg.Connection, chance: random.Random, longest: timedelta, *, is_old: bool
    ) -> None:
        """A row and its object, in one transaction, which may be rolled back in the end."""
        entry, body = choose_entry(chance), make_body(chance)
        table, number = entry
        key = f"{'f/' if table == 'files' else FROM if is_old else TO}n{number}.png"
        self._histories.begin(entry, body, keys_of(table, key))
        with suppress(RolledBack):
            with connection.transaction():
                connection.execute(INSERTS[table], [number, key])
                self._put(key, body, is_legacy=is_old)
                self._hold_open(chance, longest)
                if chance.random() < 0.3:
                    raise RolledBack
            self._histories.acknowledge(entry, body, is_legacy=is_old)
            self.done["uploads"] += 1
            return
        self._histories.withdraw(entry)
        self.done[ROLLED_BACK] += 1
        if is_old:
            self.orphans.add(key)

    def _replace(
        self, connection: psycopg.Connection, chance: random.Random, longest: timedelta, *, is_old: bool
    ) -> None:
        """Other bytes under the key that the row holds, where this version looks for it."""
        if (entry := self._choose(chance)) is None:
            return
        table, number = entry
        with connection.transaction():
            row = connection.execute(LOCKS[table], [number]).fetchone()
            if row is None:
                return
            body, key = make_body(chance), str(row[0])
            is_legacy = key.startswith(FROM) if table == "pictures" else is_old
            self._histories.begin(entry, body, ())
            self._put(key, body, is_legacy=is_legacy)
            self._hold_open(chance, longest)
        self._histories.acknowledge(entry, body, is_legacy=is_legacy)
        self.done[f"objects replaced by the {'old' if is_old else 'new'} version"] += 1

    def _delete(self, connection: psycopg.Connection, chance: random.Random, _: timedelta, *, is_old: bool) -> None:
        """The row, and then both objects, as docs/application.md asks for."""
        del is_old
        if (entry := self._choose(chance)) is None:
            return
        self._histories.begin_deletion(entry)
        table, number = entry
        row = connection.execute(DELETES[table], [number]).fetchone()
        if row is None:
            return
        for key in keys_of(table, str(row[0])):
            self._world.migration.legacy.delete(key)
            self._world.migration.production.delete(key)
        self._histories.end_deletion(entry, time.time())
        self.done["rows and objects deleted"] += 1

    def _choose(self, chance: random.Random) -> Entry | None:
        living = self._histories.living()
        return chance.choice(living) if living else None

    def _put(self, key: str, body: bytes, *, is_legacy: bool) -> None:
        (self._world.migration.legacy if is_legacy else self._world.migration.production).put(key, body)

    def _hold_open(self, chance: random.Random, longest: timedelta) -> None:
        """Keep the transaction open for a while; not for long once the application is to end."""
        self._ended.wait(chance.uniform(0, longest.total_seconds()))


def keys_of(table: Table, key: str) -> tuple[str, ...]:
    """Return the keys under which the object of a row may stand, on either side."""
    if table == "files":
        return (key,)
    name = key.removeprefix(FROM).removeprefix(TO)
    return (FROM + name, TO + name)


def choose_entry(chance: random.Random) -> Entry:
    """Return a new entry of either table."""
    return "pictures" if chance.random() < 0.5 else "files", FIRST_OWN_ID + chance.randrange(2**40)


def make_body(chance: random.Random) -> bytes:
    """Return new bytes; some objects have the same size as others."""
    return chance.randbytes(chance.choice((100, 1000, chance.randrange(8, 4096))))
