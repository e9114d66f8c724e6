"""What the page shows, in the order in which it shows it: texts and numbers, ready to be put into the template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["good", "bad", "warn", "busy", "calm"]
Cell = str | int
Kind = Literal["text", "number", "foreign", "outcome"]
"""How a column is shown: `foreign` in fixed-width letters, broken anywhere; `outcome` with the colour of its name."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of each row is its heading."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the migration stands, in a word and a sentence."""

    word: str
    sentence: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that a reader looks for first."""

    label: str
    value: str
    note: str = ""
    tone: Tone = "calm"


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a stacked bar, or of a chart's interval: in percent of the whole width or height."""

    name: str
    start: float
    size: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """The rate of a queue over time."""

    title: str
    description: str
    """The same in words."""
    highest: str
    half: str
    times: Sequence[str]
    """Below its left end, its middle and its right end."""
    columns: Sequence[Sequence[Bar]]
    """The stacked outcomes of each interval, from left to right."""
    marks: Sequence[Bar]
    """Intervals in which entries came to need an operator."""
    pauses: Sequence[Bar]
    """When the migration was paused."""
    outcomes: Sequence[str]
    """Those that occur: the legend."""
    numbers: Table
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePart:
    """One queue of the chain."""

    name: str
    summary: str
    state: str
    tone: Tone
    bars: Sequence[Bar]
    """The entries by outcome, side by side."""
    outcomes: Table
    tables: Table | None
    """Each table of it, where there are several."""
    chart: Chart | None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPart:
    """One reason for which entries need an operator."""

    outcome: str
    reason: str
    sentence: str
    """How many, and what to do before the command."""
    command: str
    samples: Table | None
    error: str = ""
    """Of a batch that failed as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page."""

    migration: str
    written: str
    """Of which database and when."""
    verdict: Verdict
    tiles: Sequence[Tile]
    planned: Sequence[tuple[str, str]]
    timeline: Sequence[tuple[str, str]]
    events: Table | None
    queues: Sequence[QueuePart]
    reasons: Sequence[ReasonPart]
    more_reasons: str
    retries: Table | None
    verification: Verdict
    hosts: Table | None
    attempts: Table | None
    tries: Table | None
    settings: Table | None
    passes: Table | None
    versions: Sequence[tuple[str, str]]
    plan: Sequence[str]
    """Its lines."""
