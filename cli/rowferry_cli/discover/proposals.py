"""The [[entries]] of a plan to write, each with its reasons; what else its rows could do. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rowferry_cli.discover.evidence.catalogue import UserTable
from rowferry_cli.discover.evidence.telling_columns import find_change_column


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """Texts that hold keys: whether rows get new ones is the user's choice."""

    text_prefix: str
    """What stands before the key in the text."""
    object_prefix: str
    """What stands before it in the object's key."""
    folder: str
    """What all sampled keys begin with behind that; empty where they begin with several folders."""
    example: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One [[entries]] of the plan to write, and why."""

    entries: Mapping[str, Any]
    sampled: int
    existing: int
    comments: Sequence[str] = ()
    is_commented_out: bool = False
    """Whether something has to be done first, so that the plan holds it as a comment."""
    seen: Sequence[str] = ()
    """What the sampled texts are like."""
    if_stays: Sequence[str] = ()
    """Comments that matter only if the rows stay."""
    keys: KeyTexts | None = None
    """None: nothing is left to choose."""

    @property
    def evidence(self) -> str:
        """How many sampled rows name what exists."""
        what = "folders with objects" if self.entries.get("names") == "folder" else "existing objects"
        return f"{self.existing:,} of {self.sampled:,} sampled rows name {what}"

    @property
    def label(self) -> str:
        """The column, and the place in it."""
        path = f" {self.entries['path']}" if "path" in self.entries else ""
        return f"{_label(self)}{path}"


def follow(proposal: Proposal, to: str) -> Proposal:
    """Return the proposal with rows that get new keys, which begin with `to` in the place of their folder."""
    keys = proposal.keys
    if keys is None:
        return proposal
    stay = {"rows", "changed", "legacy_object", "production_object"}
    entries = {name: value for name, value in proposal.entries.items() if name not in stay}
    entries |= {"from": keys.text_prefix + keys.folder, "to": keys.text_prefix + to}
    if keys.text_prefix != keys.object_prefix:
        entries["legacy_object"] = keys.object_prefix + keys.folder
        entries["production_object"] = keys.object_prefix + to
    return replace(proposal, entries=entries, if_stays=(), keys=None)


def name_rows(table: UserTable) -> dict[str, Any]:
    """Return `table` and `id` of entries."""
    (first, *more) = table.id or ("?",)
    return {"table": table.plan_name, "id": [first, *more] if more else first}


def explain_stay(table: UserTable, states: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what matters of rows that stay: how later passes find changes, and what could tell where objects are."""
    if find_change_column(table) is None:
        yield "Each pass looks at all rows: no column was found that says when a row changed (`changed`)."
    for column, values in states.items():
        seen = ", ".join(values)
        yield f"{column} may say where an object is (seen: {seen}). If so, leave `rows` and `changed` out, and write:"
        yield f'moved = {{ {_show_name(column)} = [{_show(values[0])}, "…"] }}'


def _show(value: str) -> str:
    return value if re.fullmatch(r"\d+", value) else f'"{value}"'


def _show_name(column: str) -> str:
    return column if re.fullmatch(r"[A-Za-z0-9_-]+", column) else json.dumps(column)


def name_apart(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals, each with a `name` where a column is named twice."""
    labels = Counter(_label(proposal) for proposal in proposals)
    places = Counter(proposal.label for proposal in proposals)
    return [
        _name(one, with_text=places[one.label] > 1) if labels[_label(one)] > 1 and "name" not in one.entries else one
        for one in proposals
    ]


def _name(proposal: Proposal, *, with_text: bool) -> Proposal:
    """Return a proposal with a name of its place; with how its texts begin where that place is named twice."""
    begins = str(proposal.entries.get("from") or "alone") if with_text else ""
    name = f"{proposal.label} {begins}".rstrip()
    return replace(proposal, entries={**proposal.entries, "name": name})


def _label(proposal: Proposal) -> str:
    entries = proposal.entries
    return f"{entries['table']}.{entries['key']}" if "key" in entries else entries["table"]
