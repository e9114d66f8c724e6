"""What one bench has seen: every repetition of every contestant, their medians and spread, and the targets.

A bench fills a Record and knows nothing of files:

    def run(record: Record) -> None:
        record.settings |= {"entries": record.pick(30_000, short=300)}
        record.interleave({"rowferry": measure_it, "boto3": measure_that}, repetitions=record.pick(5, short=1))
        ratio = record.median("rowferry", "entries_per_second") / record.median("boto3", "entries_per_second")
        record.expect("entries/s against boto3", ratio, at_least=3, unit="x")
"""

import json
import os
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from bench.machine import describe_machine, list_versions

RESULTS = Path(__file__).parent / "results"

PAIR = re.compile(r"\[\s+([-\d.e]+),\s+([-\d.e]+)\s+\]")
"""A point of a curve, which JSON would spread over four lines."""

Figures = Mapping[str, float]
"""What one repetition gave: a name that ends in its unit, such as `cpu_ms_per_entry`, and the number."""

INCLUDED = "_start_included"
"""Ends the name of a figure of a whole run, from the start of a process to its end; without, its start is left out."""

Size = TypeVar("Size")


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table of the issue: what was asked for, and what was seen."""

    what: str
    seen: float
    unit: str
    at_least: float | None
    at_most: float | None
    server: str = ""
    """Where it was seen, if that is one of several servers."""

    @property
    def reached(self) -> bool:
        """Return whether the figure lies within its bounds, both included."""
        return (self.at_least is None or self.seen >= self.at_least) and (
            self.at_most is None or self.seen <= self.at_most
        )


@dataclass(slots=True)
class Record:
    """What one bench has seen so far.

    `short` asks for a run of seconds, which proves the bench and not the speed; `reduced` for fewer and shorter
    repetitions, which tell the speed with less certainty.
    """

    name: str
    what: str
    short: bool = False
    reduced: bool = False
    report: Callable[[str], None] = lambda _line: None
    """Called with what is being measured now."""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=list_versions)
    repetitions: list[dict[str, Any]] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Contestants that could not take part, and why."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the figures must know."""
    series: dict[str, list[list[float]]] = field(default_factory=dict)
    """Curves by name, for the plots: [x, y] each."""
    targets: list[Target] = field(default_factory=list)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))

    def pick(self, full: Size, *, short: Size, reduced: Size | None = None) -> Size:
        """Return the size for this run; a reduced one has the full size unless it is given its own."""
        if self.short:
            return short
        return reduced if self.reduced and reduced is not None else full

    def interleave(self, contestants: Mapping[str, Callable[[], Figures]], *, repetitions: int) -> None:
        """Let every contestant run once, then all of them again, so that what else the machine does meets them all."""
        for number in range(1, repetitions + 1):
            for contestant, measure in contestants.items():
                self.report(f"{contestant}, {number} of {repetitions}")
                load = round(os.getloadavg()[0], 2)
                self.repetitions.append({"contestant": contestant, "load_before": load, **measure()})

    def values(self, contestant: str, figure: str) -> list[float]:
        """Return a figure of every repetition of a contestant, in the order in which they ran."""
        return [run[figure] for run in self.repetitions if run["contestant"] == contestant and figure in run]

    def median(self, contestant: str, figure: str) -> float:
        """Return the median of a figure; raises statistics.StatisticsError when the contestant has none."""
        return statistics.median(self.values(contestant, figure))

    def expect(
        self,
        what: str,
        seen: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        unit: str = "",
        server: str = "",
    ) -> None:
        """Note a target and what was seen; `unit` stands behind both in the table."""
        self.targets.append(Target(what, seen, unit, at_least, at_most, server))

    def compare(
        self,
        what: str,
        figure: str,
        contestant: str,
        baseline: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Note a ratio of medians as a target; nothing when the baseline was absent."""
        if baseline not in self.absent:
            ratio = self.median(contestant, figure) / self.median(baseline, figure)
            self.expect(what, ratio, at_least=at_least, at_most=at_most, unit="x")

    def summarise(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return median and spread of every figure of every contestant."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for run in self.repetitions:
            for figure in run.keys() - {"contestant"}:
                values = self.values(run["contestant"], figure)
                found.setdefault(run["contestant"], {})[figure] = describe_spread(values)
        return {contestant: dict(sorted(figures.items())) for contestant, figures in found.items()}

    def compose(self) -> dict[str, Any]:
        """Return everything as it stands in the file of results."""
        return {
            "name": self.name,
            "what": self.what,
            "when": self.began.isoformat(timespec="seconds"),
            "seconds": round((datetime.now(UTC) - self.began).total_seconds(), 1),
            "short": self.short,
            "reduced": self.reduced,
            "machine": describe_machine(),
            "versions": self.versions,
            "settings": self.settings,
            "targets": [{**asdict(target), "reached": target.reached} for target in self.targets],
            "notes": self.notes,
            "absent": self.absent,
            "summary": self.summarise(),
            "repetitions": self.repetitions,
            "series": self.series,
        }

    def write(self, folder: Path) -> Path:
        """Write the file of results into a folder, which is made where it is not there, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        text = json.dumps(tidy(self.compose()), indent=1)
        path.write_text(PAIR.sub(r"[\1, \2]", text) + "\n", encoding="utf-8")
        return path


def describe_spread(values: list[float]) -> dict[str, float]:
    """Return median, smallest, largest and sample standard deviation (0 of a single value)."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "stdev": statistics.stdev(values) if len(values) > 1 else 0.0,
    }


def tidy(value: Any) -> Any:
    """Return the same with every fraction cut to four significant digits, or to whole units above 1,000."""
    if isinstance(value, dict):
        return {name: tidy(one) for name, one in value.items()}
    if isinstance(value, list):
        return [tidy(one) for one in value]
    if isinstance(value, float):
        return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")
    return value
