"""Writes the page of a report: the rows of some queries, in a template."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from psycopg.rows import DictRow

from rowferry import __version__
from rowferry.batch import Outcome
from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.formatting import count, count_batches, count_entries, format_json
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue, name_packages
from rowferry_cli.messages import NO_REASON
from rowferry_cli.report import verdict, wording
from rowferry_cli.report.chart import Chart, Span
from rowferry_cli.report.data import Report, read_in_order
from rowferry_cli.report.hide import clean, cut, find_secrets
from rowferry_cli.setup.plan_words import describe_plan
from rowferry_cli.status.chain import find_meanings, show_queue_state
from rowferry_queues.verify.spec import VERIFY

TEMPLATES = Path(__file__).parent / "templates"
MOST = {"page_events": 200, "error_groups": 40}
"""Rows of each query."""
MOST_OF_A_PLAN = 200
"""Lines of its description."""
NAMES = {
    "count": count, "count_batches": count_batches, "count_entries": count_entries, "find_meanings": find_meanings,
    "name_packages": name_packages, "show_queue_state": show_queue_state, "TONES": verdict.TONES,
    "OUTCOMES": [*map(str, Outcome)], "NO_REASON": NO_REASON, "VERSION": __version__,
}  # fmt: skip
"""What the template calls, beside its filters."""


def make_page(connection: Connection, report: Report, environ: Mapping[str, str]) -> str:
    """Return the HTML of the page of a migration; the secrets of `environ` are hidden wherever they are.

    The caller has read `report` in the transaction that is open: one snapshot.
    """
    with translated_errors():
        rows = read_rows(connection, report)
    return render_page(rows, find_secrets(environ))


def read_rows(connection: Connection, report: Report) -> dict[str, Any]:
    """Return what the template shows: rows, the judgements on them, and the charts."""
    named = {"migration": report.migration, "queue": None}
    read = {name: connection.execute(statement(name), named | {"limit": MOST[name]}).fetchall() for name in MOST}
    migration = fetch_one(connection, statement("page_migration"), named)
    tried = {row["queue"]: row for row in read_in_order(connection, "page_attempts", named)}
    attempts = {queue: tried[queue] for queue in report.by_queue if queue in tried}
    return {
        "report": report,
        "migration": migration,
        "judgement": verdict.judge(report),
        "verified": verdict.judge_verification(report, attempts.get(VERIFY.name)),
        "main": verdict.find_main(report),
        "whole": verdict.find_duration(report),
        "planned": _describe_plan(report.migration, migration["plan"]),
        "plan": format_json(migration["plan"], indent=2).splitlines(),
        "attempts": attempts,
        "charts": _read_charts(connection, named, attempts),
        "reasons": read["error_groups"],
        "events": read["page_events"],
    }


def _describe_plan(migration: str, document: dict[str, Any]) -> list[str]:
    """Return what was planned as `rowferry plan` says it; where it cannot be read on from some point on, why not."""
    lines: list[str] = []
    try:
        lines.extend(describe_plan(parse_plan(document, f"of migration {migration}")))
    except UsageError as error:
        lines.append(f"The rest cannot be put in words here. {error}")
    more = [f"{len(lines) - MOST_OF_A_PLAN:,} more lines: see the plan below."] if len(lines) > MOST_OF_A_PLAN else []
    return lines[:MOST_OF_A_PLAN] + more


def _read_charts(connection: Connection, named: dict[str, Any], attempts: Mapping[str, DictRow]) -> dict[str, Chart]:
    """Return the chart of each queue that has ended attempts: from the first start to the last end of any attempt."""
    ended = [row for row in attempts.values() if row["done"] or row["error"] or row["retry"]]
    spans = {row["queue"]: Span(row["began_at"], max(row["began_at"], row["ended_at"])) for row in ended}
    begins, steps = zip(*((one.begins_at, one.step) for one in spans.values()), strict=True) if spans else ((), ())
    chosen = {"queues": list(spans), "begins": list(begins), "steps": list(steps)}
    counts: dict[str, dict[datetime, dict[str, int]]] = {queue: {} for queue in spans}
    for row in connection.execute(statement("page_pace"), named | chosen):
        counts[row["queue"]].setdefault(row["began_at"], {})[row["outcome"]] = row["entries"]
    return {queue: Chart(queue, span.step, span.cut(counts[queue])) for queue, span in spans.items()}


def render_page(rows: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Return the HTML of a page; each text in it is cleaned, and then escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=partial(_finalize, secrets=secrets),
    )
    names = ("share", "moment", "step", "rate", "bytes", "duration")
    filters = {name: getattr(wording, f"write_{name}") for name in names} | {"cut": partial(_cut, secrets=secrets)}
    environment.filters |= filters  # pyright: ignore[reportUnknownMemberType]
    return environment.get_template("page.html", globals=NAMES | {"find_summary": find_summary}).render(rows)


def _cut(text: Any, most: int = 400, *, secrets: Collection[str]) -> str:
    return cut(clean(str(text), secrets), most)


def _finalize(value: Any, secrets: Collection[str]) -> Any:
    """Return what is put in the place of an expression: numbers with separators, text cleaned."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else clean(str(value), secrets)


def find_summary(queue: str) -> str:
    """Return what a queue does, in one sentence."""
    try:
        return find_queue(queue).summary
    except UsageError:
        return "This queue is not installed where the page was written."
