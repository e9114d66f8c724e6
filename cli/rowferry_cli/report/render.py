"""Renders the page of a report: its blocks, its SVG, its HTML."""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rowferry import __version__
from rowferry.queues import name_packages
from rowferry_cli.report.events import tabulate_events
from rowferry_cli.report.facts import Facts
from rowferry_cli.report.failures import Clean, build_reasons, describe_more, tabulate_retries
from rowferry_cli.report.hide import clean, find_secrets
from rowferry_cli.report.hosts import tabulate_attempts, tabulate_hosts, tabulate_tries
from rowferry_cli.report.model import Bar, Chart, Page
from rowferry_cli.report.planned import describe_plan, list_dates, tabulate_passes, tabulate_settings, write_plan
from rowferry_cli.report.queue_parts import build_queues
from rowferry_cli.report.verdict import judge, judge_verification, list_tiles
from rowferry_cli.report.wording import write_moment
from rowferry_queues.verify.spec import VERIFY


def build_page(facts: Facts, clean: Clean) -> Page:
    """Return what the page shows. `clean` hides the secrets of foreign texts before they are cut."""
    migration = facts.migration
    verified = [batch for batch in facts.batches if batch.queue == VERIFY.name]
    deep, batches = sum(one.deep for one in verified), sum(one.batches for one in verified)
    return Page(
        migration=facts.report.migration,
        written=f"Database {migration.database}, as of {write_moment(migration.moment)}",
        verdict=judge(facts),
        tiles=list_tiles(facts),
        planned=describe_plan(facts),
        timeline=list_dates(facts),
        events=tabulate_events(facts.events, clean),
        queues=build_queues(facts),
        reasons=build_reasons(facts, clean),
        more_reasons=describe_more(facts),
        retries=tabulate_retries(facts.retries, clean),
        verification=judge_verification(facts.report, deep, batches),
        hosts=tabulate_hosts(facts),
        attempts=tabulate_attempts(facts),
        tries=tabulate_tries(facts),
        settings=tabulate_settings(facts),
        passes=tabulate_passes(facts.passes),
        versions=list(_list_versions(facts)),
        plan=write_plan(migration.plan),
    )


def _list_versions(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "This page", f"rowferry {__version__}"
    yield "Schema", facts.migration.schema_version or "of an unknown version"
    workers = sorted({version for attempts in facts.attempts for version in attempts.versions})
    yield "Workers", ", ".join(f"rowferry {version}" for version in workers) or "none that the database still knows"
    yield "PostgreSQL", facts.migration.postgres
    for queue in facts.report.queues:
        yield f"Queue {queue}", name_packages(queue) or "not installed where the page was written"


WIDTH, HEIGHT = 1200, 100


def draw_pace(chart: Chart) -> Markup:
    """Return the columns of a chart, each stacked from the bottom up."""
    width = WIDTH / len(chart.columns)
    drawn = Markup().join(_draw_column(bars, index * width, width) for index, bars in enumerate(chart.columns))
    lines = Markup().join(
        Markup('<line class="grid" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDTH, y, y) for y in (0, HEIGHT // 2)
    )
    shade = Markup('<rect class="pause" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>')
    scale = WIDTH / 100
    pauses = Markup().join(
        shade.format(_round(bar.start * scale), _round(bar.size * scale), HEIGHT, bar.title) for bar in chart.pauses
    )
    return _wrap("pace", HEIGHT, pauses + lines + drawn)


def draw_marks(chart: Chart) -> Markup:
    """Return the strip below a chart: a mark for each interval with entries that need an operator."""
    return _wrap("marks", 1, _draw_side_by_side(chart.marks))


def draw_shares(bars: Iterable[Bar]) -> Markup:
    """Return one stacked bar that lies."""
    return _wrap("shares", 1, _draw_side_by_side(bars))


def _wrap(name: str, height: int, drawn: Markup) -> Markup:
    """Return the drawing in a box that stretches; it is hidden from screen readers, which are told it in words."""
    opening = Markup('<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">')
    return opening.format(name, WIDTH, height) + drawn + Markup("</svg>")


def _draw_column(bars: Iterable[Bar], left: float, width: float) -> Markup:
    box = Markup('<rect class="o-{}" x="{}" y="{}" width="{}" height="{}"/>')
    found = list(bars)
    if not found:
        return Markup()
    drawn = Markup().join(
        box.format(bar.name, _round(left), _round(HEIGHT - bar.start - bar.size), _round(width), _round(bar.size))
        for bar in found
    )
    return Markup("<g><title>{}</title>{}</g>").format(found[0].title, drawn)


def _draw_side_by_side(bars: Iterable[Bar]) -> Markup:
    box = Markup('<rect class="o-{}" x="{}" y="0" width="{}" height="1"><title>{}</title></rect>')
    scale = WIDTH / 100
    return Markup().join(
        box.format(bar.name, _round(bar.start * scale), _round(bar.size * scale), bar.title) for bar in bars
    )


def _round(number: float) -> str:
    """Return a coordinate with two decimals at most."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


TEMPLATES = Path(__file__).parent / "templates"


def write_page(path: Path, facts: Facts, environ: Mapping[str, str]) -> None:
    """Write the page of a migration; the secrets of `environ` are hidden wherever they are. Raises OSError."""
    secrets = find_secrets(environ)
    page = render_page(build_page(facts, partial(clean, secrets=secrets)), secrets)
    write_whole(path, page)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there once it is whole: one of the same name is replaced only then. Raises OSError.

    A link stays a link to the file that is replaced, which keeps its mode; a new file is for its owner
    alone. A pipe or a device is written to.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.touch(mode=0o600)  # it holds keys and error texts
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def render_page(page: Page, secrets: Collection[str] = ()) -> str:
    """Return the HTML of a page; each text in it is cleaned, and then escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=partial(_finalize, secrets=secrets),
    )
    drawings = {"draw_pace": draw_pace, "draw_marks": draw_marks, "draw_shares": draw_shares}
    return environment.get_template("page.html", globals=drawings).render(page=page)


def _finalize(value: Any, secrets: Collection[str]) -> Any:
    """Return what is put in the place of an expression: drawn SVG as it is, numbers with separators, text cleaned."""
    if isinstance(value, Markup):
        return value
    return f"{value:,}" if isinstance(value, int) else clean(str(value), secrets)
