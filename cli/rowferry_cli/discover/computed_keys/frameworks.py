"""Finds objects whose keys are computed from an id and a file name, as CarrierWave and Paperclip do."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from psycopg import sql

from rowferry.db.connection import identifiers
from rowferry_cli.discover.evidence.catalogue import Catalogue, Row
from rowferry_cli.discover.evidence.named import ColumnTexts
from rowferry_cli.discover.evidence.written_sql import quote_name, quote_text

MOST_IDS = 40
"""Of one folder that rows are looked up by."""

IdForm = Literal["plain", "partition"]

_PARTITION = re.compile(r"\d{3}(?:/\d{3}){2,}")
_PLAIN = re.compile(r"\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILE_NAME = re.compile(r"[^/]+\.\w{1,8}")


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that the ids of one table stand in, and how an id is written there."""

    prefix: str
    form: IdForm


@dataclass(frozen=True, slots=True)
class ComputedKeys:
    """Keys made of a folder, a row's id, and the file name that a column holds."""

    texts: ColumnTexts
    folder: Folder
    required: tuple[str, ...]
    """What follows the id, with `{value}` for the text and `{stem}` for the text without its extension."""
    optional: tuple[str, ...]
    """The same of objects that only some rows have."""


def find_computed(catalogue: Catalogue, columns: Sequence[ColumnTexts], keys: Iterable[str]) -> Iterator[ComputedKeys]:
    """Yield the columns that hold the file names of listed keys, by the rows that the keys' ids name."""
    names = [texts for texts in columns if len(texts.table.id) == 1 and _are_file_names(texts)]
    folders = group_by_folder(keys)
    for texts in names:
        for folder, rests in folders.items():
            value = sql.SQL("e.{}::text").format(identifiers(texts.column.name))
            rows = catalogue.find_rows(texts.table, texts.table.id[0], list(rests)[:MOST_IDS], value)
            templates = count_templates(rows, rests, texts.path)
            if templates:
                yield _make(texts, folder, templates)


def _are_file_names(texts: ColumnTexts) -> bool:
    return 2 * sum(1 for text in texts.texts if _FILE_NAME.fullmatch(text)) >= len(texts.texts)


def group_by_folder(keys: Iterable[str]) -> dict[Folder, dict[str, list[str]]]:
    """Return the listed keys by folder and id: what follows the id in each."""
    found: dict[Folder, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in keys:
        for folder, row_id, rest in split_key(key):
            found[folder][row_id].append(rest)
    return found


def split_key(key: str) -> Iterator[tuple[Folder, str, str]]:
    """Yield each way to read a key as a folder, an id, and the rest behind it."""
    if partition := _PARTITION.search(key):
        row_id = partition[0].replace("/", "").lstrip("0") or "0"
        yield Folder(key[: partition.start()], "partition"), row_id, key[partition.end() + 1 :]
        return
    steps = key.split("/")
    for position, step in enumerate(steps[:-1]):
        if _PLAIN.fullmatch(step):
            yield (
                Folder("".join(f"{name}/" for name in steps[:position]), "plain"),
                step,
                "/".join(steps[position + 1 :]),
            )


def count_templates(rows: Iterable[Row], rests: dict[str, list[str]], path: str | None) -> Counter[str]:
    """Return how many rows have an object of each template among the listed ones."""
    counts: Counter[str] = Counter()
    for row in rows:
        values = [row.value] if path is None else _parse_values(row.value)
        found = {template for rest in rests.get(row.id[0], ()) for value in values if (template := fit(rest, value))}
        counts.update(found)
    return counts


def fit(rest: str, value: str) -> str | None:
    """Return the template by which a file name becomes the rest of a key; None where it does not."""
    if not value:
        return None
    folder, _, name = rest.rpartition("/")
    before = f"{folder}/" if folder else ""
    if name == value or name.endswith(f"_{value}"):
        return f"{before}{name[: -len(value)]}{{value}}"
    stem, dot, _ = value.rpartition(".")
    if dot and name.startswith(f"{stem}."):
        return f"{before}{{stem}}{name[len(stem) :]}"
    return None


def _parse_values(value: str) -> list[str]:
    try:
        document = json.loads(value)
    except ValueError:
        return []
    return [text for text in cast("list[Any]", document) if isinstance(text, str)] if isinstance(document, list) else []


def _make(texts: ColumnTexts, folder: Folder, templates: Counter[str]) -> ComputedKeys:
    """Choose which templates every row has: the original file; others may be missing."""
    ranked = sorted(templates, key=lambda one: (one not in {"{value}", "original/{value}"}, -templates[one], one))
    return ComputedKeys(texts, folder, (ranked[0],), tuple(ranked[1:8]))


def write_expression(computed: ComputedKeys, templates: Sequence[str]) -> str:
    """Return SQL over a row that yields the keys by some templates: text, or text[] where there are several."""
    (id_column,) = computed.texts.table.id
    column = quote_name(computed.texts.column.name)
    is_list = computed.texts.path is not None
    value = "f.value" if is_list else column
    row_id = quote_name(id_column) if computed.folder.form == "plain" else write_partition(quote_name(id_column))
    keys = [_write_key(computed.folder.prefix, row_id, template, value) for template in templates]
    if not is_list:
        return keys[0] if len(keys) == 1 else "array[{}]".format(", ".join(keys))
    function = (
        f"{computed.texts.column.type}_array_elements_text({column})"
        if computed.texts.column.kind == "json"
        else (
            f"unnest({column})"
            if computed.texts.column.kind == "array"
            else f"json_array_elements_text({column}::json)"
        )
    )
    if len(keys) == 1:
        return f"array(select {keys[0]} from {function} as f (value))"  # noqa: S608 - for the plan, which users read
    rows = ", ".join(f"({key})" for key in keys)
    return f"array(select k.key from {function} as f (value), lateral (values {rows}) as k (key))"  # noqa: S608


def _write_key(prefix: str, row_id: str, template: str, value: str) -> str:
    stem = f"regexp_replace({value}, '\\.[^.]*$', '')"
    parts = [quote_text(prefix), row_id]
    literal = "/"
    for piece in re.split(r"(\{value\}|\{stem\})", template):
        if piece in {"{value}", "{stem}"}:
            parts += [quote_text(literal), value if piece == "{value}" else stem]
            literal = ""
        else:
            literal += piece
    if literal:
        parts.append(quote_text(literal))
    return " || ".join(part for part in parts if part != "''")


def write_partition(row_id: str) -> str:
    """Return SQL for Paperclip's id partition: 000/001/234, and groups of three of what is longer than nine digits.

    Source: kt-paperclip, lib/paperclip/interpolations.rb: nine digits below 10^9, else twelve at least; digits that
    fill no group of three are dropped.
    """
    digits = f"case when {row_id} < 1000000000 then 9 else greatest(12, length({row_id}::text)) end"
    padded = f"lpad({row_id}::text, {digits}, '0')"
    return f"rtrim(regexp_replace(regexp_replace({padded}, '^((...)*).*$', '\\1'), '(...)', '\\1/', 'g'), '/')"
