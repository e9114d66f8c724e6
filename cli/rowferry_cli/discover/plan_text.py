"""Writes a plan as TOML with comments. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from rowferry.formatting import show_text
from rowferry.plan import Side
from rowferry_cli.discover.proposals import Proposal

SQL_KEYS = ("where", "objects", "optional")
ABOUT_ACLS = "# Everybody may read some legacy objects, by their ACL: each copy gets the ACL of its object."
ABOUT_STAYING = (
    'rows = "stay": the keys stay the same, so no row can tell where its object is. Only the queue knows what was '
    "copied, and the application is switched once all is. Where each row shall tell, give `to` another prefix and "
    'leave `rows` out, or name a column that tells: moved = { storage = ["old", "new"] }.'
)


def write_sides(name: str, legacy: Side, production: Side, extras: Mapping[str, Any]) -> str:
    """Return the tables of the plan before its entries."""
    lines = [
        "# Written by `rowferry plan --discover`. `rowferry plan` explains it, `rowferry check` tests it.",
        "",
        "[migration]",
        write_pair("name", name),
        "",
        "[legacy]  # only read",
        *_write_side(legacy),
        "",
        "[production]  # written; nothing is deleted",
        *_write_side(production),
        *([ABOUT_ACLS] if extras.get("acl") == "copy" else []),
        *(write_pair(key, value) for key, value in extras.items()),
    ]
    return "\n".join(lines) + "\n"


def _write_side(side: Side) -> Iterator[str]:
    yield write_pair("bucket", side.bucket)
    if side.endpoint_url:
        yield write_pair("endpoint_url", side.endpoint_url)
    if side.region or not side.endpoint_url:
        yield write_pair("region", side.region_or_default)
    if side.profile:
        yield write_pair("profile", side.profile)


def write_entries(proposals: Sequence[Proposal], objects: Sequence[Mapping[str, str]], notes: Sequence[str]) -> str:
    """Return the [[entries]] and [[objects]] of the plan with their comments."""
    lines: list[str] = []
    stays = any(proposal.entries.get("rows") == "stay" for proposal in proposals)
    for note in [*notes, *([ABOUT_STAYING] if stays else [])]:
        lines += ["", *(f"# {line}" for line in wrap(note))]
    for proposal in proposals:
        mark = "# " if proposal.is_commented_out else ""
        lines += ["", *_comment(proposal), f"{mark}[[entries]]"]
        for key, value in proposal.entries.items():
            lines += [f"{mark}{line}" for line in write_pair(key, value).split("\n")]
    for each in objects:
        lines += ["", "# Objects that no row names.", "[[objects]]"]
        lines += [write_pair(key, value) for key, value in each.items()]
    return "\n".join(lines) + "\n"


def _comment(proposal: Proposal) -> Iterator[str]:
    if proposal.sampled:
        yield f"# {proposal.evidence}."
    for comment in (*proposal.seen, *proposal.comments, *proposal.if_stays):
        yield from (f"# {line}" for line in wrap(comment))


def wrap(text: str, width: int = 116) -> list[str]:
    """Return a sentence in lines, with nothing in it that a comment must not hold."""
    lines: list[str] = [""]
    for word in show_text(text).split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def write_pair(key: str, value: Any) -> str:
    """Return a key and its value as TOML writes them; SQL in several lines, to which line breaks mean nothing."""
    if key in SQL_KEYS and isinstance(value, str) and "\n" in value and "'''" not in value:
        return f"{key} = '''\n{value.rstrip()}\n'''"
    return f"{key} = {_write_value(value)}"


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{{ {} }}".format(", ".join(f"{_write_key(key)} = {_write_value(one)}" for key, one in pairs))
    if isinstance(value, list | tuple):
        return "[{}]".format(", ".join(map(_write_value, cast("Sequence[Any]", value))))
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_key(key: str) -> str:
    is_bare = key.replace("_", "").replace("-", "").isalnum() and key.isascii()
    return key if is_bare else json.dumps(key, ensure_ascii=False)
