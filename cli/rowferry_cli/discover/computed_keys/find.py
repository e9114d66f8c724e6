"""Proposes [[entries]] whose keys are computed: from ids and file names, and by rules learned from the bucket."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from rowferry_cli.discover.computed_keys.conventions import Fit, find_conventions
from rowferry_cli.discover.computed_keys.frameworks import ComputedKeys, find_computed, write_expression
from rowferry_cli.discover.computed_keys.templates import Template
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import Catalogue, UserTable
from rowferry_cli.discover.evidence.folders import write_pattern
from rowferry_cli.discover.evidence.measure import measure_objects
from rowferry_cli.discover.evidence.named import LEAST_SHARE, ColumnTexts, Named
from rowferry_cli.discover.evidence.telling_columns import find_change_column
from rowferry_cli.discover.proposals import Proposal, explain_stay, name_rows

ReadStates = Callable[[UserTable], Mapping[str, Sequence[str]]]
"""Returns the columns of a table that may say where objects are, with values."""
ByTable = dict[str, list[Proposal]]
_SMALLER = re.compile(r"thumb|tiny|small|preview|medium|large|resiz|variant|cache|crop|mini|card", re.IGNORECASE)


class ComputedFinder:
    """Compares keys of the bucket that no column holds with rows."""

    def __init__(self, catalogue: Catalogue, bucket: LegacyBucket, read_states: ReadStates, *, sample: int) -> None:
        """`sample`: rows of each table."""
        self._catalogue, self._bucket, self._read_states = catalogue, bucket, read_states
        self._sample = sample
        self.lacking: list[UserTable] = []
        """Tables whose keys hold a digest that this database cannot compute; one may be here several times."""

    def list_keys(self, named: Sequence[Named]) -> list[str]:
        """Return keys of the bucket that no column names; `named`: what columns name, folders of objects as well."""
        known = {key for one in named for key in one.keys}
        folders = [write_pattern(one) for one in named if one.names_folders]
        listed = [key for key in self._bucket.list_samples() if key not in known]
        return [key for key in listed if not any(pattern.match(key) for pattern in folders)]

    def find_by_names(self, columns: Sequence[ColumnTexts], keys: Sequence[str]) -> ByTable:
        """Return what columns of file names stand for, by table: of several folders the one that most rows have."""
        found: ByTable = {}
        for computed in find_computed(self._catalogue, columns, keys):
            if (one := self._propose(computed)) is not None:
                found.setdefault(one.entries["table"], []).append(one)
        return {table: _keep_best(of_table) for table, of_table in found.items()}

    def _propose(self, computed: ComputedKeys) -> Proposal | None:
        table = computed.texts.table
        entries = name_rows(table) | {"key": computed.texts.column.name, "from": "", "to": ""}
        entries["objects"] = write_expression(computed, computed.required)
        measured = measure_objects(self._catalogue, self._bucket, table, entries, self._sample)
        if not measured.existing or measured.existing * LEAST_SHARE < measured.sampled:
            return None
        if computed.optional:
            entries["optional"] = write_expression(computed, computed.optional)
        entries["rows"] = "stay"
        if changed := find_change_column(table):
            entries["changed"] = changed
        comments = [
            f"The column holds file names; the keys are made of {computed.folder.prefix!r}, the id and the name.",
        ]
        return Proposal(entries, measured.sampled, measured.existing, comments, if_stays=self._explain_stay(table))

    def _explain_stay(self, table: UserTable) -> list[str]:
        return list(explain_stay(table, self._read_states(table)))

    def learn_rules(
        self, keys: Sequence[str], named: Sequence[Named], by_name: ByTable, proposals: list[Proposal], known: Set[str]
    ) -> None:
        """Put what is learned of whole tables in the place of `by_name` and `proposals` where it explains more rows.

        `known`: tables that a known schema explains.
        """
        folders = {(one.table.plan_name, key.partition("/")[0]) for one in named for key in one.keys if "/" in key}
        for table, fits in find_conventions(self._catalogue, self._bucket, keys, self._sample, self.lacking):
            name = table.plan_name
            if name in known:
                continue
            if poor := _find_poor(table, fits, proposals):
                proposals[:] = [one for one in proposals if one not in poor]
            columns = [one.entries["key"] for one in proposals if one.entries["table"] == name]
            new = fits if poor else [fit for fit in fits if _is_new(fit, table, columns, folders)]
            if not new:
                continue
            found = propose_rules(table, new, columns)
            others = by_name.get(name, ())
            most = max((one.existing for one in others), default=0)
            names_more = "optional" in found.entries and not any("optional" in one.entries for one in others)
            if found.existing > most or (found.existing == most and names_more):
                by_name[name] = [replace(found, if_stays=self._explain_stay(table))]


def _find_poor(table: UserTable, fits: Sequence[Fit], proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return what was proposed of a table and explains far fewer of its rows than rules for its keys do."""
    most = max((fit.measured.existing for fit in fits if 10 * fit.share >= 9), default=0)
    return [
        one
        for one in proposals
        if one.entries["table"] == table.plan_name
        and one.entries.get("rows") == "stay"
        and 10 * one.existing < 9 * one.sampled
        and 2 * one.existing < most
    ]


def _keep_best(proposals: Sequence[Proposal]) -> list[Proposal]:
    best: dict[str, Proposal] = {}
    for one in sorted(proposals, key=lambda one: -one.existing):
        best.setdefault(one.entries["key"], one)
    return list(best.values())


def _is_new(fit: Fit, table: UserTable, columns: Sequence[str], folders: Set[tuple[str, str]]) -> bool:
    """Return whether a rule names objects that no column names: those of another folder."""
    if (table.plan_name, fit.measured.example_key.partition("/")[0]) in folders:
        return False
    return bool(fit.template.folder) or not any(fit.template.holds(column) for column in columns)


def propose_rules(table: UserTable, fits: Sequence[Fit], taken: Iterable[str]) -> Proposal:
    """Return the [[entries]] of a table whose keys are computed; `taken`: key columns that other [[entries]] name."""
    ranked = sorted(fits, key=lambda fit: (_SMALLER.search(fit.template.literals) is not None, -fit.share,
                                           len(fit.template.sql)))  # fmt: skip
    first, *others = ranked
    entries = name_rows(table)
    entries |= {"key": _choose_key(table, first.template, set(taken)), "from": "", "to": ""}
    if folder := _find_common_folder([fit.template.folder for fit in ranked]):
        entries |= {"legacy_object": folder, "production_object": folder}
    entries["objects"] = first.template.sql
    if len(others) == 1:
        entries["optional"] = others[0].template.sql
    elif others:
        entries["optional"] = "array[{}]".format(",\n  ".join(fit.template.sql for fit in others))
    entries["rows"] = "stay"
    if changed := find_change_column(table):
        entries["changed"] = changed
    seen = [f"For example {first.measured.example_key!r}."]
    comments = ["No column holds the keys: `objects` computes them as the application seems to do."]
    if others:
        counts = [f"{fit.measured.existing:,} of {fit.measured.sampled:,}" for fit in others]
        comments.append(f"Of the objects of `optional`, sampled rows have {', '.join(counts)}.")
    return Proposal(entries, first.measured.sampled, first.measured.existing, comments, seen=seen)


def _find_common_folder(folders: Sequence[str]) -> str:
    return folders[0] if len(set(folders)) == 1 else ""


def _choose_key(table: UserTable, template: Template, taken: set[str]) -> str:
    """Return a column that every row has, one that the keys are made of if possible."""
    fit = [one.name for one in table.columns.values() if not one.is_generated and one.name not in taken]
    used = [name for name in fit if template.uses(name)]
    texts = [name for name in used if table.columns[name].kind == "text"]
    return next(iter([*texts, *(name for name in used if name in table.id), *table.id]))
