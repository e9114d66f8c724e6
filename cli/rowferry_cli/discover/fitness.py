"""Asks the rules of `rowferry check` about what is proposed: mends it by a `where`, or leaves it as a comment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from rowferry.db.connection import Connection, set_local
from rowferry.errors import PlanError
from rowferry.formatting import show_text
from rowferry.plan import Plan, Side
from rowferry.plan_file import parse_plan
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import Catalogue, UserTable
from rowferry_cli.discover.evidence.readings import Reading
from rowferry_cli.discover.proposals import Proposal
from rowferry_cli.discover.separate import (
    Kinds,
    Values,
    compose_objects,
    compose_text,
    find_condition,
    find_document_condition,
    sample_beside,
)
from rowferry_enqueue.checks.finding import Finding, find_problems
from rowferry_enqueue.checks.rows.keys import check_keys
from rowferry_enqueue.checks.rows.pairs import check_one_bucket
from rowferry_enqueue.checks.rows.reverting import check_reverting
from rowferry_enqueue.checks.rows.tables import CheckedTable, check_table, check_together

STATEMENT_TIMEOUT = timedelta(seconds=30)
"""Of one statement of a check, which reads a whole table."""
FEW_MISSING = 20
"""Where no more than one row in so many names a missing object, those are lost, and of no kind of their own."""

Document = Mapping[str, Any]


class Fitness:
    """Compares proposals with the rows."""

    def __init__(
        self, connection: Connection, catalogue: Catalogue, bucket: LegacyBucket, sides: Sequence[Side]
    ) -> None:
        """`connection` is in autocommit; `sides`: legacy and production."""
        self._connection, self._catalogue, self._bucket = connection, catalogue, bucket
        self.unscanned: dict[str, None] = {}
        """What could not be asked in time, a clause each."""
        self._sides = {name: {"bucket": side.bucket, "endpoint_url": side.endpoint_url, "region": side.region}
                       for name, side in zip(("legacy", "production"), sides, strict=True)}  # fmt: skip

    def narrow(self, proposal: Proposal, most: int) -> Proposal:
        """Return the proposal with a `where` that leaves out rows without objects, if something tells them."""
        table = self._catalogue.find_table(proposal.entries["table"])
        is_narrow = any(proposal.entries.get(name) for name in ("where", "moved", "within", "names"))
        if table is None or proposal.is_commented_out or is_narrow:
            return proposal
        if "path" in proposal.entries:
            return self._narrow_documents(proposal, table, most)
        return self._narrow_texts(proposal, table, most)

    def _narrow_documents(self, proposal: Proposal, table: UserTable, most: int) -> Proposal:
        key = proposal.entries["key"]
        column = table.columns[key]
        if column.kind != "text":
            return proposal
        where = find_document_condition(key, [row.value for row in self._catalogue.sample_column(table, column, most)])
        if where is None:
            return proposal
        about = "Some texts are no JSON, and `where` leaves them out."
        return replace(proposal, entries={**proposal.entries, "where": where}, comments=[*proposal.comments, about])

    def _narrow_texts(self, proposal: Proposal, table: UserTable, most: int) -> Proposal:
        entries = proposal.entries
        objects, key = entries.get("objects"), entries["key"]
        value = compose_text(key) if objects is None else compose_objects(objects)
        rows = list(sample_beside(self._catalogue, table, value, most))
        kinds = self._tell_apart(rows, entries)
        if FEW_MISSING * len(kinds.bad) <= len(kinds.good) + len(kinds.bad):
            return proposal
        where = find_condition(table, key, kinds, is_text=objects is None)
        if where is None:
            return proposal if objects is None or not kinds.good else _make_optional(proposal)
        about = (
            f"Of {len(kinds.good) + len(kinds.bad):,} sampled rows, {len(kinds.good):,} meet `where`: those whose "
            "objects exist. Where `moved` names the same column, leave `where` out."
        )
        return replace(
            proposal,
            entries={**entries, "where": where},
            sampled=len(kinds.good),
            existing=len(kinds.good),
            comments=[*proposal.comments, about],
        )

    def _tell_apart(self, rows: Sequence[tuple[Any, Values]], entries: Document) -> Kinds:
        """Return the rows by whether all of their objects exist; those that are no entries are in neither."""
        begins = entries["from"]
        reading = Reading(begins, entries.get("legacy_object", begins), entries.get("encoding") == "percent")
        named: list[tuple[Any, Values, list[str | None]]] = []
        for found, values in rows:
            if "objects" in entries:
                named.append((found, values, cast("list[str | None]", found if isinstance(found, list) else [found])))
            elif found and found.startswith(begins):
                named.append((found, values, [reading.read(found)]))
        existing = self._bucket.find(key for _, _, keys in named for key in keys if key)
        good = [(str(found), values) for found, values, keys in named if existing.issuperset(keys)]
        bad = [(str(found), values) for found, values, keys in named if not existing.issuperset(keys)]
        return Kinds(good, bad)

    def judge(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Return the proposals; those that `check` refuses, each alone or beside those before it, as comments."""
        fit: list[Proposal] = []
        judged: list[Proposal] = []
        together = [one for one in proposals if not one.is_commented_out]
        if not self._find_problems(together):
            return list(proposals)
        for one in proposals:
            if one.is_commented_out:
                judged.append(one)
            elif problems := self._find_problems([one]) or self._find_problems([*fit, one]):
                judged.append(_refuse(one, problems))
            else:
                fit.append(one)
                judged.append(one)
        return judged

    def _find_problems(self, proposals: Sequence[Proposal]) -> list[Finding]:
        if not proposals:
            return []
        document = {
            "migration": {"name": "proposed"},
            **self._sides,
            "entries": [dict(proposal.entries) for proposal in proposals],
        }
        try:
            plan = parse_plan(document, "proposed")
        except PlanError as error:
            return [Finding("problem", str(error))]
        with self._connection.transaction():
            set_local(self._connection, transaction_read_only="on", statement_timeout=STATEMENT_TIMEOUT)
            found = list(_check(self._connection, plan))
        problems = find_problems(found)
        self.unscanned |= dict.fromkeys(finding.what for finding in problems if "timeout" in finding.what)
        return [finding for finding in problems if finding.what not in self.unscanned]


def _make_optional(proposal: Proposal) -> Proposal:
    """Return a proposal whose objects may be missing, since nothing tells which rows have them."""
    objects, optional = proposal.entries["objects"], proposal.entries.get("optional")
    if optional is not None:
        return proposal
    text = {"key", "from", "to", "objects", "rows", "changed"}
    entries = {name: value for name, value in proposal.entries.items() if name not in text} | {"optional": objects}
    entries |= {name: proposal.entries[name] for name in ("rows", "changed") if name in proposal.entries}
    about = "Nothing tells the rows whose objects exist from the others, so these may be missing."
    return replace(proposal, entries=entries, comments=[*proposal.comments, about])


def _check(connection: Connection, plan: Plan) -> Iterator[Finding]:
    """Yield what `check` finds of the rows; this role's rights are no fault of a plan, since workers have their own."""
    checked: list[CheckedTable] = [check_table(connection, entries) for entries in plan.entries]
    for table in checked:
        yield from table.findings
    yield from check_together(checked)
    usable = [queries for table in checked for queries in table.usable]
    yield from check_keys(connection, usable, _ignore)
    yield from check_one_bucket(connection, plan, usable, _ignore)
    yield from check_reverting(connection, usable)


def _ignore(_: str) -> None:
    """Show nothing."""


def _refuse(proposal: Proposal, problems: Sequence[Finding]) -> Proposal:
    """Return the proposal as a comment that says what stands in the way, and what would fix it."""
    seen = [show_text(one.sentence) for one in problems[:3]]
    about = ["`rowferry check` refuses this. Mend it, and then uncomment it.", *seen]
    return replace(proposal, is_commented_out=True, comments=[*about, *proposal.comments], if_stays=(), keys=None)
