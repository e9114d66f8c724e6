"""An application that goes on while its objects are migrated: it inserts, renames, deletes and overwrites."""

import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any, LiteralString, Self

import psycopg
from botocore.exceptions import BotoCoreError, ClientError

from support.entries.entry_table import FROM
from support.s3.quick_requests import RequestFailed
from torture.oracle import Oracle
from torture.world import World, key_of

LONGEST_PAUSE = timedelta(seconds=0.02)
ENDS_WITHIN = timedelta(seconds=60)
RETRY_AFTER = timedelta(seconds=0.1)
FIRST_OWN_ID = 1_000_000


class Application:
    """One thread that does one thing after the other, and says in the oracle what it is about to do.

    It knows nothing of the migration: it writes legacy keys and reads none. Where S3 is away, it tries again.
    """

    def __init__(self, world: World, oracle: Oracle, seed: int, longest_pause: timedelta = LONGEST_PAUSE) -> None:
        self._world, self._oracle, self._chance = world, oracle, random.Random(seed)
        self._longest_pause = longest_pause
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._connection = psycopg.connect(world.migration.dsn, autocommit=True, application_name="application")
        self.keys = {number: key_of(number) for number in range(1, world.entries + 1)}
        """The legacy key of each row, by its id: where the application puts a new version of its object."""
        self.bodies: dict[int, bytes] = {}
        """The last body that was written to an object, where that was done after the first one."""
        self.written: set[str] = set()
        """Every legacy key that was written or deleted."""
        self.retired: set[str] = set()
        """Legacy keys that no row is about any more."""
        self.done: Counter[str] = Counter()
        self.fault: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(ENDS_WITHIN.total_seconds())
        if self._thread.is_alive():
            self.fault = TimeoutError("the application did not come to its end")
        self._connection.close()

    def _run(self) -> None:
        actions: list[Callable[[], None]] = [self._insert, self._rename, self._delete, self._overwrite, self._overwrite]
        try:
            while not self._ended.wait(self._chance.uniform(0, self._longest_pause.total_seconds())):
                self._chance.choice(actions)()
        except Exception as fault:  # noqa: BLE001 - it is raised again where the thread is joined
            self.fault = fault

    def _insert(self) -> None:
        """A new object, and then the row that points at it."""
        row_id = FIRST_OWN_ID + self.done["rows inserted"]
        key, body = self._new_key(row_id), self._new_body()
        self._oracle.expect(row_id, body)
        self._put(key, body)
        self._change("insert into public.avatars values (%s, %s)", row_id, key)
        self.keys[row_id], self.bodies[row_id] = key, body
        self.done["rows inserted"] += 1

    def _rename(self) -> None:
        """A new object under another key, and then the row points at that one."""
        row_id = self._choose()
        key, body = self._new_key(row_id), self._new_body()
        self._oracle.allow(row_id, body)
        self._put(key, body)
        self._change("update public.avatars set path = %s where id = %s", key, row_id)
        self._oracle.expect(row_id, body)
        self.retired.add(self.keys[row_id])
        self.keys[row_id], self.bodies[row_id] = key, body
        self.done["rows renamed"] += 1

    def _delete(self) -> None:
        """The row, and now and then its object as well."""
        row_id = self._choose()
        self._change("delete from public.avatars where id = %s", row_id)
        self._oracle.forget(row_id)
        key = self.keys.pop(row_id)
        self.bodies.pop(row_id, None)
        self.retired.add(key)
        self.done["rows deleted"] += 1
        if self._chance.random() < 0.5:
            self.written.add(key)
            self._persist(lambda: self._world.migration.legacy.delete(key))
            self.done["objects deleted"] += 1

    def _overwrite(self) -> None:
        """The object under its old key; the row stays as it is."""
        row_id = self._choose()
        body = self._new_body()
        self._oracle.allow(row_id, body)
        self._put(self.keys[row_id], body)
        self.bodies[row_id] = body
        self.done["objects overwritten"] += 1

    def _change(self, statement: LiteralString, *parameters: object) -> None:
        """Change one row, however long a worker holds it."""
        changed = self._connection.execute(statement, parameters).rowcount
        assert changed == 1, f"{changed} rows instead of one: {statement} {parameters}"

    def _choose(self) -> int:
        return self._chance.choice(list(self.keys))

    def _new_key(self, row_id: int) -> str:
        return f"{FROM}u{row_id}/{time.monotonic_ns()}.png"

    def _new_body(self) -> bytes:
        return self._chance.randbytes(self._chance.randrange(1, 4096))

    def _put(self, key: str, body: bytes) -> None:
        self.written.add(key)
        self._persist(lambda: self._world.migration.legacy.put(key, body))

    def _persist(self, write: Callable[[], Any]) -> None:
        """Write until S3 has taken it."""
        give_up_at = time.monotonic() + ENDS_WITHIN.total_seconds()
        while True:
            try:
                write()
            except (BotoCoreError, ClientError, RequestFailed):
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(RETRY_AFTER.total_seconds())
            else:
                return
