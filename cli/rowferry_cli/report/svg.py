"""Draws charts as inline SVG. Pure.

The drawings stretch to the width that they get, so they hold no text: labels are HTML beside them, and each bar has a
title that browsers show to the mouse. Colours are the classes `o-migrated`, `o-kept` and so on of page.css.
"""

from collections.abc import Iterable

from markupsafe import Markup

from rowferry_cli.report.model import Bar, Chart

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
