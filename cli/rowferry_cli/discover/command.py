"""What `rowferry plan --discover` does: finds the two buckets, discovers, writes the plan, and says what was seen."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rowferry.errors import UsageError
from rowferry.formatting import count, format_json, show_text
from rowferry.plan import Side
from rowferry_cli.discover.side_options import SideOptions, choose_side

if TYPE_CHECKING:
    from rowferry_cli.discover.choose_rows import Rows
    from rowferry_cli.discover.discover import Discovered
    from rowferry_cli.discover.left_folders import LeftFolders


MOST_NEAR = 3
"""Columns of which few texts name objects that are named where nothing else was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of `rowferry plan` that discovering needs."""

    plan_path: Path
    schema: str | None
    """A known schema's name or file (`--for`)."""
    fields: Sequence[str]
    legacy: SideOptions
    production: SideOptions
    sample: int
    to: str | None
    """What new keys begin with (`--to`)."""
    rows: Rows | None
    as_json: bool


def discover_plan(wanted: Wanted) -> None:
    """Discover, write the plan, and print what was seen. Raises UsageError where nothing was found."""
    from rowferry.db.connection import connect
    from rowferry_cli.discover.discover import Discovery, Scope
    from rowferry_cli.discover.evidence.bucket import LegacyBucket
    from rowferry_cli.discover.known import read_known

    known = None if wanted.schema is None else read_known(wanted.schema)
    document = _read_document(wanted.plan_path)
    if not wanted.as_json and document.get("entries"):
        raise UsageError(
            f"There is a plan with [[entries]] at {wanted.plan_path}: name another file with --plan, or add --json to "
            "see what would be written."
        )
    legacy, production = choose_side(wanted.legacy, document), choose_side(wanted.production, document)
    request = Scope(legacy, production, wanted.sample, known, wanted.fields)
    with (
        _show_progress() as on_step,
        connect("plan --discover", autocommit=True) as connection,
        LegacyBucket(legacy, lambda words: on_step(words, 0, 0), "--legacy" if wanted.legacy.url else None) as bucket,
    ):
        discovered = Discovery(connection, bucket, request, on_step).run()
        refusal, denied = bucket.refusal, bucket.denied
    undecided = _choose_rows(discovered, wanted)
    name = document.get("migration", {}).get("name") or _choose_name(discovered)
    text = write_text(wanted.plan_path, document, name, (legacy, production), discovered)
    left = _find_left(wanted, discovered, legacy, text, denied)
    text += left.text
    if wanted.as_json:
        click.echo(format_json(describe_as_json(discovered, undecided, text), indent=2))
        return
    _write(wanted.plan_path, text)
    _report(wanted.plan_path, discovered, legacy)
    if left.words:
        click.echo(show_text(left.words))
    if refusal is not None:
        click.echo(
            f"The legacy bucket cannot be listed ({refusal}), so prefixes outside of the columns were not tried."
        )
    click.echo("Next: read the plan, then run `rowferry migrate --dry-run`.")


def _find_left(wanted: Wanted, discovered: Discovered, legacy: Side, text: str, denied: int) -> LeftFolders:
    """Return the [[objects]] that a plan of these [[entries]] lacks. Raises UsageError where it would hold nothing."""
    from rowferry_cli.discover.left_folders import LeftFolders, describe_folders, propose_folders, propose_objects

    if any(not proposal.is_commented_out for proposal in discovered.proposals):
        return LeftFolders() if wanted.fields else propose_objects(text)
    # Where no row was read, the database is another one, or empty.
    is_denied = 0 < denied == discovered.heads
    is_open = discovered.rows > 0 and not is_denied and not wanted.fields and wanted.schema is None
    left = propose_folders(legacy) if is_open else LeftFolders()
    nothing = _explain_nothing(discovered, legacy, denied)
    if left.text:
        return left._replace(words=f"{nothing} {left.words}")
    if discovered.proposals or wanted.as_json:
        return left
    raise UsageError(f"{nothing}{describe_folders(legacy)}")


def _choose_rows(discovered: Discovered, wanted: Wanted) -> list[str]:
    """Let the user choose what becomes of rows that hold keys; with --json, return where nothing was chosen."""
    from rowferry_cli.discover.choose_rows import choose_rows, make_question

    undecided: list[str] = []
    if wanted.as_json and wanted.to is None and wanted.rows is None:
        undecided = [one.label for one in discovered.proposals if one.keys is not None]
    rows = "stay" if undecided else wanted.rows
    ask = make_question(may_stay=rows is None) if sys.stdin.isatty() else None
    discovered.proposals = choose_rows(discovered.proposals, wanted.to, rows, ask)
    return undecided


# The plan


def _read_document(path: Path) -> dict[str, Any]:
    """Return the plan that is there, which may lack its entries; empty where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"The plan {path} cannot be read: {error}.") from error


def _choose_name(discovered: Discovered) -> str:
    """Return the name of a known schema, else that of the table of which most sampled rows name objects."""
    tables = sorted(discovered.proposals, key=lambda one: -one.existing)
    names = [schema.name for schema in discovered.schemas]
    names += [str(one.entries["table"]).rpartition(".")[2] for one in tables]
    names.append("objects")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", names[0]).strip("-._")[:63] or "objects"


def write_text(
    path: Path, document: Mapping[str, Any], name: str, sides: tuple[Side, Side], discovered: Discovered
) -> str:
    """Return the plan: what is in the file already, where that lacks entries, and the entries."""
    from rowferry_cli.discover.plan_text import write_entries, write_sides

    before = write_sides(name, *sides, discovered.production)
    if document and not document.get("entries"):
        before = path.read_text(encoding="utf-8").rstrip() + "\n"
    notes = [f"{schema.title}: {schema.note}" for schema in discovered.schemas if schema.note]
    if discovered.left_out:
        notes.append("Not in this plan: " + "; ".join(discovered.left_out) + ".")
    if discovered.unseen:
        notes.append("Not looked at: " + "; ".join(discovered.unseen) + ".")
    return before + write_entries(discovered.proposals, discovered.objects, notes)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The plan cannot be written to {path} ({error.strerror}): name another file.") from error


# What was seen


@contextmanager
def _show_progress() -> Generator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr, on a terminal; yield what moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as live:
        task = live.add_task("connecting", total=None)

        def move(words: str, done: int, total: int) -> None:
            if total:
                live.update(task, description=show_text(words), completed=done, total=total)
            else:
                live.update(task, description=show_text(words))

        yield move


def describe_as_json(discovered: Discovered, undecided: Sequence[str], text: str) -> dict[str, Any]:
    """Return what was found as plain values; `undecided`: columns whose rows the plan leaves only since it must."""
    return {
        "schemas": [schema.name for schema in discovered.schemas],
        "columns": discovered.columns,
        "requests": discovered.heads,
        "entries": [
            {**proposal.entries, "sampled": proposal.sampled, "existing": proposal.existing}
            for proposal in discovered.proposals
        ],
        "left_out": discovered.left_out,
        "unseen": discovered.unseen,
        "undecided": list(undecided),
        "plan": text,
    }


def _report(path: Path, discovered: Discovered, legacy: Side) -> None:
    schemas = ", ".join(f"{schema.title} ({schema.versions})" for schema in discovered.schemas)
    if schemas:
        click.echo(f"This is {schemas}.")
    for proposal in discovered.proposals:
        seen = proposal.evidence
        if proposal.is_commented_out:
            seen += " (a comment in the plan, which says what to fix first)"
        click.echo(show_text(f"  {proposal.label}: {seen}"))
    looked = f"Looked at {count(discovered.columns, 'column', 'columns')}, and " if discovered.columns else "Looked "
    click.echo(f"{looked}for {count(discovered.heads, 'key', 'keys')} in {legacy.bucket}; nothing was changed there.")
    written = sum(not proposal.is_commented_out for proposal in discovered.proposals)
    prefixes = f" and {len(discovered.objects)} [[objects]]" if discovered.objects else ""
    click.echo(f"Wrote {path} with {written:,} [[entries]]{prefixes}.")


def _explain_nothing(discovered: Discovered, legacy: Side, denied: int) -> str:
    from rowferry.s3.cures import cure_of

    if denied and denied == discovered.heads:
        return f"All {denied:,} requests to {legacy.bucket} were refused (403): {cure_of('read-denied', legacy)}."
    looked = f"{discovered.heads:,} keys from {count(discovered.columns, 'column', 'columns')}"
    near = f" Near misses: {'; '.join(discovered.left_out[:MOST_NEAR])}." if discovered.left_out else ""
    return (
        f"No column of this database names an object in {legacy.bucket} ({looked} were tried): see that --legacy and "
        f"DATABASE_URL belong together, or name the schema with --for.{near}"
    )
