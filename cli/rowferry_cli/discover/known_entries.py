"""Fills the entries of a known schema with what is found in this database and this bucket."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry.plan import Side
from rowferry_cli.discover.computed_keys.patterns import write_partition
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.bucket_folders import list_prefixes
from rowferry_cli.discover.evidence.catalogue import EVERY_ROW, Catalogue, UserTable
from rowferry_cli.discover.evidence.measure import Measured, measure_objects
from rowferry_cli.discover.evidence.named import Named
from rowferry_cli.discover.evidence.search import Search
from rowferry_cli.discover.known import KnownEntries
from rowferry_cli.discover.proposals import Proposal, name_rows
from rowferry_cli.discover.texts import propose

NEW_VALUE = "production"
"""What a state column says of production rows until the user writes the right value."""


class KnownFinder:
    """Finds the objects of known entries."""

    def __init__(
        self,
        catalogue: Catalogue,
        bucket: LegacyBucket,
        search: Search,
        sides: tuple[Side, Side],
        *,
        sample: int,
    ) -> None:
        """`sides`: legacy and production; `sample`: rows of each table."""
        self._catalogue, self._bucket, self._search = catalogue, bucket, search
        self._legacy, self._production = sides
        self._sample = sample

    def find(self, known: KnownEntries, table: UserTable) -> list[Proposal]:
        """Return the [[entries]] that known ones become, for each state value that rows with objects have."""
        tried = [self._find(known, table, moved) for moved in self._choose_states(known, table)]
        ranked = sorted(tried, key=lambda found: -sum(one.existing for one in found))
        others = [_name_apart(one) for found in ranked[1:] for one in found if one.existing]
        return [*(ranked[0] if ranked else ()), *others]

    def _choose_states(self, known: KnownEntries, table: UserTable) -> Iterator[Mapping[str, Sequence[Any]]]:
        """Yield `moved` with each value that the legacy rows may have."""
        if not known.moved:
            yield {}
            return
        columns = {column: self._catalogue.list_values(table, column, self._sample) for column in known.moved}
        guessed = [column for column, values in known.moved.items() if values[0] == "{value}"]
        if not guessed:
            yield known.moved
            return
        for value in columns[guessed[0]]:
            yield {
                column: [value, values[1]] if column in guessed else values for column, values in known.moved.items()
            }

    def _find(self, known: KnownEntries, table: UserTable, moved: Mapping[str, Sequence[Any]]) -> list[Proposal]:
        if known.objects is not None:
            return self._find_computed(known, table, moved)
        column = table.columns[known.key]
        found = self._search.look_at(table, column, _compose_condition(known.where, moved))
        wanted = [named for named in found if known.path in {None, named.path} and not named.names_folders]
        proposals = [one for named in wanted for one in self._propose(named, known)]
        return [_add_known(one, known, moved) for one in proposals]

    def _propose(self, named: Named, known: KnownEntries) -> list[Proposal]:
        return propose(named, self._legacy, self._production, rewrites_urls=known.rewrites_urls)

    def _find_computed(
        self, known: KnownEntries, table: UserTable, moved: Mapping[str, Sequence[Any]]
    ) -> list[Proposal]:
        prefixes = ["", *list_prefixes(self._bucket)] if "{prefix}" in (known.objects or "") else [""]
        best: tuple[Measured, dict[str, Any]] | None = None
        for prefix in prefixes:
            entries = _write_entries(known, table, moved, prefix)
            first = measure_objects(self._catalogue, self._bucket, table, entries, min(20, self._sample))
            if first.existing and (best is None or first.existing > best[0].existing):
                best = first, entries
        if best is None:
            return []
        measured = measure_objects(self._catalogue, self._bucket, table, best[1], self._sample)
        return [Proposal(best[1], measured.sampled, measured.existing, _list_notes(known, moved))]


def _name_apart(proposal: Proposal) -> Proposal:
    """Return a proposal for another state, as of a mirror, with a new one of its own: rows must tell them apart."""
    moved = {column: [old, f"{new}_{old}"] for column, (old, new) in proposal.entries["moved"].items()}
    named = " and ".join(f'"{new}"' for _, new in moved.values())
    comments = [words.replace(f'"{NEW_VALUE}"', named) for words in proposal.comments]
    name = "_".join(str(old) for old, _ in moved.values())
    return replace(proposal, entries={**proposal.entries, "moved": moved, "name": name}, comments=comments)


def _compose_condition(where: str | None, moved: Mapping[str, Sequence[Any]]) -> sql.Composable:
    condition: sql.Composable = EVERY_ROW if where is None else sql.SQL("({}\n)").format(literal(where))
    for column, values in moved.items():
        condition += sql.SQL(" and e.{}::text = {}").format(identifiers(column), sql.Literal(str(values[0])))
    return condition


def _write_entries(
    known: KnownEntries, table: UserTable, moved: Mapping[str, Sequence[Any]], prefix: str
) -> dict[str, Any]:
    """Return the document of entries whose keys SQL computes."""
    entries: dict[str, Any] = name_rows(table)
    if known.id is not None:
        entries["id"] = known.id
    entries |= {"key": known.key, "from": "", "to": ""}
    quoted = prefix.replace("'", "''")
    for name, expression in (("objects", known.objects), ("optional", known.optional)):
        if expression is not None:
            partition = write_partition(table.id[0]) if len(table.id) == 1 else "id"
            entries[name] = expression.replace("{prefix}", quoted).replace("{id_partition}", partition).strip()
    return _add_fields(entries, known, moved)


def _add_known(proposal: Proposal, known: KnownEntries, moved: Mapping[str, Sequence[Any]]) -> Proposal:
    """Return a proposal with what the schema says of it; URLs that name a bucket are rewritten all the same."""
    entries = dict(proposal.entries)
    comments = _list_notes(known, moved)
    if entries["from"] != entries["to"]:
        return replace(proposal, comments=[*comments, *proposal.comments])
    proposal = replace(proposal, if_stays=(), keys=None)  # the schema says what becomes of its rows
    entries.pop("changed", None)
    if moved:
        entries.pop("rows", None)
    return replace(proposal, entries=_add_fields(entries, known, moved), comments=comments)


def _add_fields(entries: dict[str, Any], known: KnownEntries, moved: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    if moved:
        entries["moved"] = {column: list(values) for column, values in moved.items()}
    for name in ("where", "rows", "changed", "name"):
        if (value := getattr(known, name)) is not None:
            entries[name] = value
    return entries


def _list_notes(known: KnownEntries, moved: Mapping[str, Sequence[Any]]) -> list[str]:
    notes = [known.note] if known.note else []
    if any(values[1] == NEW_VALUE for values in moved.values()):
        notes.append(f'Write what the application calls the new bucket in the place of "{NEW_VALUE}".')
    return notes
