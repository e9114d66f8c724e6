"""What becomes of an application that is migrated by the plan that discovery has written: compared with an oracle.

The oracle knows no plan: each object must stand in the production bucket under its key, byte for byte. A row may change
only so that it names the production bucket instead of the legacy one, and only if the objects that it names are there.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from support.processes.cli import well

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


class DiscoveredMigration:
    """One application, discovered and migrated: what was moved, what is named, and what is wrong."""

    def __init__(self, application: UnseenApplication, found: Discovering) -> None:
        self._application, self._found = application, found
        self._urls = found.url_of(found.legacy.bucket), found.url_of(found.production.bucket)
        self._before = dict(self._read_rows())
        with counting_requests() as asked:
            well(found.discover(production=self._urls[1]))
        self.requests = asked.total()
        """What discovery has asked the legacy server, listings included."""
        well(found.run("check"))
        assert application.list_spare(application.read_discovered()) == set()
        said, self._plan = found.run("migrate", "--yes").stdout, found.plan_path.read_text().replace("\n# ", " ")
        legacy, production = found.legacy.listing(), found.production.listing()
        self._there = set(production)
        """The keys that stand in the production bucket, and of those ..."""
        self.moved = {key for key in application.keys & self._there if production[key][:2] == legacy[key][:2]}
        """... the ones that are right."""
        words = said + found.plan_path.read_text()
        told = " ".join(re.findall("Not in this plan: .*", words.replace("\n# ", " ")))
        self.named = {key for key in application.keys - self.moved if is_named(key, words) or self._is_held(key, told)}
        """What was left, in folders or columns that `migrate` or the plan names."""

    def _is_held(self, key: str, words: str) -> bool:
        """Return whether a note of discovery names a column that holds a key, or its URL."""
        return any(
            self._is_told(table, column, words) and key in str(value)
            for (table, _), row in self._before.items()
            for column, value in row.items()
        )

    @staticmethod
    def _is_told(table: str, column: str, words: str) -> bool:
        return f"{table.replace(chr(34), '')}.{column}" in words

    # Rows

    def _read_rows(self) -> Iterator[tuple[RowId, dict[str, Any]]]:
        with psycopg.connect(self._found.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")
            for table, ids in connection.execute(_LIST_TABLES).fetchall():
                for (row,) in connection.execute(sql.SQL("select to_jsonb(t.*) from {} as t").format(sql.SQL(table))):
                    yield (table, str([row[name] for name in ids] if ids else row)), row

    def find_wrong_rows(self) -> Iterator[str]:
        """Yield what is wrong in the rows, and which name the legacy bucket still where the plan does not say so."""
        after = dict(self._read_rows())
        folders = {f"{one.table}.{one.key}" for one in self._application.read_by_hand().entries if one.names_folders}
        yield from (f"{row_id}: gone or new" for row_id in self._before.keys() ^ after.keys())
        for (table, row_id), row in after.items():
            before = self._before.get((table, row_id), row)
            for column, value in row.items():
                label = f"{table}.{column}"
                for fault in self._find_faults(before[column], value, is_folder=f"public.{label}" in folders):
                    yield f"{label} of {row_id}: {fault}"
                if self._names_legacy(value) and not self._is_told(table, column, self._plan):
                    yield f"{label} of {row_id} names the legacy bucket still"

    def _find_faults(self, before: Any, after: Any, *, is_folder: bool) -> Iterator[str]:
        """Yield what is wrong with a value after the migration."""
        if before == after:
            return
        legacy, production = self._found.legacy.bucket, self._found.production.bucket
        if map_texts(_parse(after), lambda text: text.replace(production, legacy)) != _parse(before):
            yield f"{before!r} became {after!r}"
        prefixes = f"{self._urls[1]}/", f"s3://{production}/"
        for text in _list_texts(after):
            if _without(prefixes, text) in self._there:
                continue
            for url in find_urls(text, self._urls[1], production):
                if _SIGNED.search(url):
                    yield f"{url!r} is presigned"
                elif not self._stands(_without(prefixes, url.rstrip(",")), is_folder=is_folder):
                    yield f"{url!r} names no object"

    def _stands(self, key: str, *, is_folder: bool) -> bool:
        """Return whether an object stands in production; a folder, with all that the legacy one has, if anything."""
        if not is_folder:
            return bool({key, unquote(key.partition("?")[0])} & self._there)
        return {one for one in self._application.keys if one.startswith(f"{key.rstrip('/')}/")} <= self._there

    def _names_legacy(self, value: Any) -> bool:
        """Return whether a value is the name of the legacy bucket, or has a URL of it that is not presigned."""
        bucket = self._found.legacy.bucket
        return any(
            text == bucket or not all(map(_SIGNED.search, find_urls(text, self._urls[0], bucket)))
            for text in _list_texts(value)
        )


def find_urls(text: str, url: str, bucket: str) -> list[str]:
    """Return the URLs of a bucket in a text, in both forms."""
    return re.findall(rf"(?:{re.escape(url)}|s3://{bucket})/[^\s\"'<>)]*", text)


def _without(prefixes: tuple[str, ...], text: str) -> str:
    for prefix in prefixes:
        text = text.removeprefix(prefix)
    return text


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


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a document whose texts are changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(one, change) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: map_texts(one, change) for name, one in cast("dict[str, Any]", value).items()}
    return value


def _list_texts(value: Any) -> list[str]:
    texts: list[str] = []
    map_texts(_parse(value), lambda text: texts.append(text) or text)
    return texts
