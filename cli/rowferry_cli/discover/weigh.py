"""Weighs what was found of a table's columns against one another: coincidences, and a column that names the bucket.

Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rowferry.plan import Side
from rowferry_cli.discover.evidence.named import Named
from rowferry_cli.discover.evidence.readings import names_bucket
from rowferry_cli.discover.proposals import Proposal


def find_hindrance(named: Named, of_table: Sequence[Named], legacy: Side, *, is_asked_for: bool) -> str:
    """Return why a column whose texts name objects is not proposed; empty where nothing is in the way.

    `of_table`: what all columns of the table name; `is_asked_for`: whether the user has named the column.
    """
    if named.is_chance:
        return f"only {named.existing:,} of {named.sampled:,} sampled rows name existing objects"
    if is_asked_for:
        return ""
    if named.column.is_generated:
        return "it is generated from others, so no row can be given another text: name it to copy its objects"
    better = next((other for other in of_table if _names_better(other, named)), None)
    if better is not None:
        seen = f"while only {named.existing:,} of its {named.sampled:,} sampled rows name existing ones"
        return f"its objects are those of {better.column.name}, {seen}"
    url = next((other for other in of_table if _names_by_url(other, named, legacy)), None)
    if url is not None:
        return f"its objects are those of {url.column.name}, whose URLs get the new bucket; their keys stay"
    return ""


def _names_by_url(one: Named, other: Named, legacy: Side) -> bool:
    """Return whether one column names the objects of the other by URLs that are rewritten, and the other by keys."""
    is_rewritten = one.reading.is_url and names_bucket(one.reading.text_prefix, legacy)
    return is_rewritten and not other.reading.is_url and bool(other.keys) and other.keys <= one.keys


def _names_better(one: Named, other: Named) -> bool:
    """Return whether one column names what the other names for a part of its rows only."""
    if one.column.name == other.column.name or one.column.is_generated or 10 * other.existing >= 9 * other.sampled:
        return False
    shared = len(one.keys & other.keys)
    return 10 * shared >= 8 * len(other.keys) and one.existing * other.sampled > other.existing * one.sampled


def tell_by_bucket(
    proposals: Sequence[Proposal], naming: Mapping[str, Sequence[str]], legacy: Side, production: Side
) -> list[Proposal]:
    """Return the proposals, with `moved` where a column of the table names the legacy bucket of each row.

    `naming`: these columns, by the table's name in the plan.
    """
    tables = [proposal.entries["table"] for proposal in proposals if _holds_keys(proposal)]
    return [
        _tell(one, naming.get(one.entries["table"], ()), tables.count(one.entries["table"]), legacy, production)
        if _holds_keys(one)
        else one
        for one in proposals
    ]


def _holds_keys(proposal: Proposal) -> bool:
    return proposal.entries.get("rows") == "stay" and proposal.entries["from"] == proposal.entries["to"]


def _tell(proposal: Proposal, columns: Sequence[str], of_table: int, legacy: Side, production: Side) -> Proposal:
    if not columns or legacy.bucket == production.bucket:
        return proposal
    named = " and ".join(columns)
    if of_table > 1:
        about = (
            f"{named} holds the name of the legacy bucket, and no two [[entries]] can share it in `moved`: name all "
            "objects of a row in `objects` of one, and leave `rows` and `changed` out."
        )
        return replace(proposal, if_stays=[*proposal.if_stays, about])
    entries = {name: value for name, value in proposal.entries.items() if name not in {"rows", "changed"}}
    entries["moved"] = {column: [legacy.bucket, production.bucket] for column in columns}
    about = f"{named} holds the name of the bucket, so each row tells where its object is."
    return replace(proposal, entries=entries, comments=[*proposal.comments, about], if_stays=(), keys=None)
