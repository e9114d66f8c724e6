"""Discovers what a migration would move: known schemas first, then every column that could hold keys."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowferry.db.connection import Connection
from rowferry.plan import Side
from rowferry_cli.discover.computed_keys.find import ComputedFinder
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.named import Named
from rowferry_cli.discover.evidence.readings import names_bucket
from rowferry_cli.discover.evidence.search import Search
from rowferry_cli.discover.evidence.telling_columns import find_state_columns
from rowferry_cli.discover.fitness import Fitness
from rowferry_cli.discover.known import KnownSchema, list_entries, recognise, refuse_unknown
from rowferry_cli.discover.known_entries import KnownFinder
from rowferry_cli.discover.proposals import Proposal, name_apart
from rowferry_cli.discover.texts import describe_folders_left, propose
from rowferry_cli.discover.weigh import find_hindrance, tell_by_bucket

OnStep = Callable[[str, int, int], None]
"""Told what is looked at, and how many of how many steps are done."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look for."""

    legacy: Side
    production: Side
    sample: int
    """Rows of each column."""
    known: KnownSchema | None = None
    """Only this schema; None: all that are recognised, and every other column."""
    fields: Sequence[str] = ()
    """Only these columns, as `table.column`; none: all."""


@dataclass(slots=True)
class Discovered:
    """What was found."""

    schemas: list[KnownSchema] = field(default_factory=list[KnownSchema])
    proposals: list[Proposal] = field(default_factory=list[Proposal])
    objects: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    production: dict[str, Any] = field(default_factory=dict[str, Any])
    columns: int = 0
    """Columns that were looked at."""
    heads: int = 0
    """Keys that were asked for."""
    rows: int = 0
    """Rows that were read, those that were read for several columns each time."""
    left_out: list[str] = field(default_factory=list[str])
    """What was seen and is not in the plan, and why: a sentence each."""
    unseen: list[str] = field(default_factory=list[str])
    """What was not looked at, and why: a clause each."""


class Discovery:
    """One run over a database and the legacy bucket. Reads only."""

    def __init__(self, connection: Connection, bucket: LegacyBucket, request: Scope, on_step: OnStep) -> None:
        """`connection` is in autocommit."""
        self._connection, self._catalogue = connection, Catalogue(connection)
        self._bucket, self._request = bucket, request
        self._on_step = on_step
        self._done = Discovered()
        self._covered: set[tuple[str, str]] = set()

    def run(self) -> Discovered:
        """Return what was found. Raises UsageError where a column or schema that is asked for is not there."""
        self._on_step("reading the catalogue", 0, 1)
        refuse_unknown(self._catalogue, self._request.fields, self._request.known)
        self._search = Search(self._catalogue, self._bucket, sample=self._request.sample)
        known = [self._request.known] if self._request.known else recognise(self._catalogue)
        for schema in known:
            self._find_known(schema)
        if self._request.known is None or self._request.known.any_column or self._request.fields:
            self._find_others()
        self._done.proposals = self._make_fit(self._done.proposals)
        self._done.heads, self._done.rows = self._bucket.heads, self._catalogue.rows
        if self._done.proposals and "acl" not in self._done.production and self._bucket.grants_to_all():
            self._done.production["acl"] = "copy"
        self._done.left_out += list(self._tell_beyond())
        self._done.unseen += [
            f"{name}, since it took too long or the table was locked"
            for name in dict.fromkeys(self._catalogue.timed_out)
        ]
        self._done.unseen += self._bucket.list_limits()
        return self._done

    def _tell_beyond(self) -> Iterator[str]:
        """Yield what names the bucket and is in no [[entries]]."""
        told = {
            (one.entries["table"], column) for one in self._done.proposals for column in one.entries.get("moved", ())
        }
        for texts, about in self._search.beyond:
            if (texts.table.plan_name, texts.column.name) not in told:
                yield f"{texts.label}: {about}"

    def _make_fit(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Return the proposals as `check` takes them; what it refuses as comments."""
        legacy, production = self._request.legacy, self._request.production
        fitness = Fitness(self._connection, self._catalogue, self._bucket, (legacy, production))
        told = tell_by_bucket(proposals, self._find_buckets(), legacy, production)
        narrowed: list[Proposal] = []
        for one in told:
            self._on_step(f"checking {one.label}", 0, 0)
            narrowed.append(fitness.narrow(one, self._request.sample))
        judged = fitness.judge(name_apart(narrowed))
        self._done.unseen += [f"whether `rowferry check` takes all of it: {what}" for what in fitness.unscanned]
        return judged

    def _find_known(self, schema: KnownSchema) -> None:
        finder = KnownFinder(
            self._catalogue,
            self._bucket,
            self._search,
            (self._request.legacy, self._request.production),
            sample=self._request.sample,
        )
        listed = list(list_entries(self._catalogue, schema))
        best: dict[tuple[str, str], list[Proposal]] = {}
        for number, (entries, table) in enumerate(listed):
            self._on_step(f"{schema.title}: {table.plan_name}.{entries.key}", number, len(listed))
            place = (table.plan_name, entries.key)
            found = [one for one in finder.find(entries, table) if one.existing]
            if count_existing(found) > count_existing(best.setdefault(place, [])):
                best[place] = found  # of several entries for one column, the one that fits best
        self._covered |= best.keys()
        for name in schema.ignored:
            table_name, _, column = name.rpartition(".")
            if (table := self._catalogue.find_table(table_name)) is not None:
                self._covered.add((table.plan_name, column))
        for (table_name, column), found in best.items():
            self._done.proposals += found
            if not found:
                self._done.left_out.append(f"{table_name}.{column}: no sampled row names an existing object")
        if any(best.values()) or self._request.known:
            self._done.schemas.append(schema)
            self._done.production |= schema.production
            self._done.objects += [each for each in schema.objects if self._bucket.has_prefix(each["prefix"])]

    def _find_others(self) -> None:
        columns = list(self._list_columns())
        self._search.unfound.clear()
        found: dict[str, list[Named]] = {}
        for number, (table, column) in enumerate(columns):
            self._on_step(f"{table.plan_name}.{column.name}", number, len(columns))
            self._done.columns += 1
            found.setdefault(table.plan_name, []).extend(self._search.look_at(table, column))
        for of_table in found.values():
            self._propose(of_table)
        self._on_step("comparing the bucket's keys with file names", len(columns), len(columns))
        self._find_computed([named for of_table in found.values() for named in of_table if not named.is_chance])

    def _propose(self, of_table: Sequence[Named]) -> None:
        states = self._read_states(of_table[0].table) if of_table else {}
        for named in of_table:
            if seen := find_hindrance(named, of_table, self._request.legacy, is_asked_for=bool(self._request.fields)):
                self._done.left_out.append(f"{named.label}: {seen}")
            elif named.names_folders and not names_bucket(named.reading.text_prefix, self._request.legacy):
                self._done.left_out.append(f"{named.label}: {describe_folders_left(named)}")
            else:
                self._done.proposals += propose(named, self._request.legacy, self._request.production, states)

    def _find_buckets(self) -> dict[str, list[str]]:
        """Return the columns that hold the legacy bucket's name, by the names of the tables to migrate."""
        names = {proposal.entries["table"] for proposal in self._done.proposals if proposal.keys is not None}
        return {
            table.plan_name: [
                column.name
                for column in table.columns.values()
                if column.kind == "text"
                and self._request.legacy.bucket in self._catalogue.list_values(table, column.name, self._request.sample)
            ]
            for table in self._catalogue.tables
            if table.plan_name in names
        }

    def _list_columns(self) -> Iterator[tuple[UserTable, Column]]:
        for table in self._catalogue.tables:
            for column in table.columns.values():
                names = {f"{table.plan_name}.{column.name}", f"{table.name}.{column.name}"}
                is_wanted = not self._request.fields or names & {*self._request.fields}
                if is_wanted and column.kind and (table.plan_name, column.name) not in self._covered:
                    yield table, column

    def _read_states(self, table: UserTable) -> dict[str, list[str]]:
        return {
            name: values
            for name in find_state_columns(table)
            if 0 < len(values := self._catalogue.list_values(table, name, self._request.sample)) < 5
        }

    def _find_computed(self, named: Sequence[Named]) -> None:
        """Add the columns and tables that objects are named after in the bucket, by their id and a file name."""
        if self._request.fields and not self._search.unfound:
            return
        finder = ComputedFinder(self._catalogue, self._bucket, self._read_states, sample=self._request.sample)
        keys = finder.list_keys(named)
        spelled = list(finder.find_by_spelling(self._search.unfound))
        of_spelled = {(one.entries["table"], one.entries["key"]) for one in spelled}
        unfound = [one for one in self._search.unfound if (one.table.plan_name, one.column.name) not in of_spelled]
        self._done.proposals += [*spelled, *finder.find_by_names(unfound, keys)]
        if not self._request.fields:
            taken = {table for table, _ in self._covered} | {
                one.entries["table"] for one in self._done.proposals if "objects" in one.entries
            }
            self._done.proposals += finder.find_by_ids(keys, named, taken)


def count_existing(proposals: Iterable[Proposal]) -> int:
    """Return how many sampled rows name existing objects."""
    return sum(proposal.existing for proposal in proposals)
