"""What becomes of an application that is migrated by the plan that discovery has written: compared with an oracle.

The oracle knows no plan: each object must stand in the production bucket under its key, byte for byte. A row may change
only so that it names the production bucket instead of the legacy one, and only if the objects that it names are there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from unittest.mock import patch
from urllib.parse import unquote

import psycopg
from psycopg import sql

from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from support.entries.discovering import Discovering
from support.entries.unseen_applications import UnseenApplication

RowId = tuple[str, str]
"""A table, and the text of the row's id; of the whole row where it has none."""
_SIGNED = re.compile(r"[?&](X-Amz-)?Signature=")
_LIST_TABLES = """
    select c.oid::regclass::text as name, array(
        select a.attname from pg_index as i, unnest(i.indkey) as k, pg_attribute as a
        where i.indexrelid = (
            select x.indexrelid from pg_index as x
            where x.indrelid = c.oid and x.indisunique and x.indpred is null and x.indexprs is null
            order by x.indisprimary desc, x.indexrelid limit 1
        ) and a.attrelid = c.oid and a.attnum = k
    ) as id
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'rowferry')
    order by 1
"""


@dataclass(slots=True, kw_only=True)
class Result:
    """What was seen of one application."""

    name: str
    discover: str = "no"
    """`right`: rows name what they name by hand; `right, but for what it names`: all else is moved or told; `partly`;
    `no`: nothing was written."""
    check: int | None = None
    """The exit status of `rowferry check`; None: no plan was written."""
    migrate: int | None = None
    objects: int = 0
    requests: int = 0
    """What discovery has asked the legacy server, listings included."""
    moved: int = 0
    """Objects that stand in the production bucket, right."""
    named: int = 0
    """Objects that were left, in folders that `migrate`, or discovery without a plan, names."""
    rows_wrong: Sequence[str] = ()
    rows_left: Mapping[str, int] = field(default_factory=dict[str, int])
    """Rows that name the legacy bucket still, by column, where the plan does not say so."""
    said: str = ""

    @property
    def silent(self) -> int:
        """Objects that were left without a word."""
        return self.objects - self.moved - self.named


class DiscoveredMigration:
    """One application, discovered, migrated and looked at."""

    def __init__(self, application: UnseenApplication, found: Discovering) -> None:
        self._application, self._found = application, found
        self._urls = found.url_of(found.legacy.bucket), found.url_of(found.production.bucket)
        self._before = dict(self._read_rows())
        self.result = Result(name=application.name, objects=len(application.keys))

    def run(self) -> Result:
        """Discover, check, migrate as discovered, and compare."""
        result, found = self.result, self._found
        with counting_requests() as asked:
            told = found.discover(production=self._urls[1])
        result.requests = asked.total()
        result.said = told.stdout + told.stderr
        if told.returncode or not found.plan_path.exists():
            self._count_left(result.said)
            return result
        checked = found.run("check")
        result.check = checked.returncode
        result.said += checked.stdout + checked.stderr
        is_found, spare = self._compare()
        done = found.run("migrate", "--yes")
        result.migrate = done.returncode
        result.said += done.stdout + done.stderr
        plan_text = found.plan_path.read_text().replace("\n# ", " ")
        self._count_left(done.stdout + found.plan_path.read_text())
        self._audit_rows(plan_text)
        if result.check or result.rows_wrong or result.rows_left or result.silent or spare:
            result.discover = "partly"
        else:
            is_all = is_found and result.moved == result.objects
            result.discover = "right" if is_all else "right, but for what it names"
        return result

    def _compare(self) -> tuple[bool, set[str]]:
        """Return whether rows name all objects as by hand, and the keys that they need and that do not exist."""
        application = self._application
        discovered, by_hand = application.read_discovered(), application.read_by_hand()
        of_hand = application.list_keys(by_hand) & application.keys
        return of_hand <= application.list_keys(discovered), application.list_spare(discovered)

    # Objects

    def _count_left(self, words: str) -> None:
        legacy, production = self._found.legacy.listing(), self._found.production.listing()
        there = {key for key in self._application.keys
                 if key in production and production[key][:2] == legacy[key][:2]}  # fmt: skip
        left = self._application.keys - there
        self.result.moved = len(there)
        told = " ".join(re.findall("Not in this plan: .*", words.replace("\n# ", " ")))
        self.result.named = sum(is_named(key, words) or self._is_held(key, told) for key in left)

    def _is_held(self, key: str, words: str) -> bool:
        """Return whether a note of discovery names a column that holds a key, or its URL."""
        return any(
            f"{table.replace(chr(34), '')}.{column}" in words and key in str(value)
            for (table, _), row in self._before.items()
            for column, value in row.items()
        )

    # Rows

    def _read_rows(self) -> Iterator[tuple[RowId, dict[str, Any]]]:
        with psycopg.connect(self._found.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")
            for table, ids in connection.execute(_LIST_TABLES).fetchall():
                for (row,) in connection.execute(sql.SQL("select to_jsonb(t.*) from {} as t").format(sql.SQL(table))):
                    yield (table, str([row[name] for name in ids] if ids else row)), row

    def _audit_rows(self, plan_text: str) -> None:
        after = dict(self._read_rows())
        there = set(self._found.production.listing())
        by_hand = self._application.read_by_hand()
        folders = {f"{one.table}.{one.key}" for one in by_hand.entries if one.names_folders}
        wrong: list[str] = [f"{row_id}: gone or new" for row_id in self._before.keys() ^ after.keys()]
        left: dict[str, int] = {}
        for (table, row_id), row in after.items():
            before = self._before.get((table, row_id), row)
            for column, value in row.items():
                label = f"{table}.{column}"
                faults = self._find_faults(before[column], value, there, is_folder=f"public.{label}" in folders)
                wrong += [f"{label} of {row_id}: {fault}" for fault in faults]
                is_told = f"{table.replace(chr(34), '')}.{column}" in plan_text
                if self._names_legacy(value) and not is_told:
                    left[label] = left.get(label, 0) + 1
        self.result.rows_wrong, self.result.rows_left = wrong, left

    def _find_faults(self, before: Any, after: Any, there: set[str], *, is_folder: bool) -> Iterator[str]:
        """Yield what is wrong with a value after the migration."""
        if before == after:
            return
        legacy, production = self._found.legacy.bucket, self._found.production.bucket
        if _replace(_parse(after), production, legacy) != _parse(before):
            yield f"{before!r} became {after!r}"
        for text in _list_texts(_parse(after)):
            if text.removeprefix(f"{self._urls[1]}/").removeprefix(f"s3://{production}/") in there:
                continue
            for url in re.findall(rf"(?:{re.escape(self._urls[1])}|s3://{production})/[^\s\"'<>)]*", text):
                key = url.rstrip(",").removeprefix(f"{self._urls[1]}/").removeprefix(f"s3://{production}/")
                if _SIGNED.search(url):
                    yield f"{url!r} is presigned"
                elif not self._stands(key, there, is_folder=is_folder):
                    yield f"{url!r} names no object"

    def _stands(self, key: str, there: set[str], *, is_folder: bool) -> bool:
        """Return whether an object stands in production; a folder, with all that the legacy one has, if anything."""
        if not is_folder:
            return bool({key, unquote(key.partition("?")[0])} & there)
        return {one for one in self._application.keys if one.startswith(f"{key.rstrip('/')}/")} <= there

    def _names_legacy(self, value: Any) -> bool:
        """Return whether a value is the name of the legacy bucket, or has a URL of it that is not presigned."""
        for text in _list_texts(_parse(value)):
            if text == self._found.legacy.bucket:
                return True
            for url in re.findall(
                rf"(?:{re.escape(self._urls[0])}|s3://{self._found.legacy.bucket})/[^\s\"'<>)]*", text
            ):
                if not _SIGNED.search(url):
                    return True
        return False


@contextmanager
def counting_requests() -> Iterator[Counter[str]]:
    """Count the requests that clients of this process send, by their operations."""
    asked, send = Counter[str](), ObjectClient.send

    async def count(client: ObjectClient, request: Request) -> Response:
        asked[request.operation] += 1
        return await send(client, request)

    with patch.object(ObjectClient, "send", count):
        yield asked


def is_named(key: str, words: str) -> bool:
    """Return whether a message names the folder of a key: `a/: 3`, `1/ to 9/: 3`, `a/* (in no folder): 3`."""
    steps = key.split("/")[:-1]
    folders = ["".join(f"{step}/" for step in steps[:number]) for number in range(1, len(steps) + 1)]
    if any(f"{folder}: " in words for folder in folders) or "the whole bucket: " in words:
        return True
    if f"{folders[-1] if folders else ''}* (in no folder): " in words:
        return True
    ranges = re.findall(r"(\S+/) to (\S+/): ", words)
    return any(first <= folder <= last for first, last in ranges for folder in folders)


def _parse(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _replace(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [_replace(one, old, new) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _replace(one, old, new) for name, one in cast("dict[str, Any]", value).items()}
    return value


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _list_texts(one)
    elif isinstance(value, dict):
        for one in cast("dict[str, Any]", value).values():
            yield from _list_texts(one)
