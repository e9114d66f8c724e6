"""What one bench has seen: every repetition of every contestant, and their medians.

A bench fills a Record and knows nothing of files:

    def run(record: Record) -> None:
        record.settings |= {"entries": record.pick(30_000, short=300)}
        record.interleave({"rowferry": measure_it, "boto3": measure_that}, repetitions=record.pick(5, short=1))
"""

import json
import os
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from bench.machine import describe_machine, list_versions

RESULTS = Path(__file__).parent / "results"

Figures = Mapping[str, float]
"""What one repetition gave: a name that ends in its unit, such as `cpu_ms_per_entry`, and the number."""

Size = TypeVar("Size")


@dataclass(slots=True)
class Record:
    """What one bench has seen so far.

    `short` asks for a run of seconds, which proves the bench and not the speed; `reduced` for fewer and shorter
    repetitions, which tell the speed with less certainty.
    """

    name: str
    short: bool = False
    reduced: bool = False
    report: Callable[[str], None] = lambda _line: None
    """Called with what is being measured now."""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=list_versions)
    absent: dict[str, str] = field(default_factory=dict)
    """Contestants that could not take part, and why."""
    loads: list[float] = field(default_factory=list)
    """Load averages before the repetitions."""
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _seen: dict[str, dict[str, list[float]]] = field(default_factory=dict)

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
                self.loads.append(os.getloadavg()[0])
                for figure, value in measure().items():
                    self._seen.setdefault(contestant, {}).setdefault(figure, []).append(value)

    def summarise(self) -> dict[str, dict[str, list[float]]]:
        """Return median, smallest and largest of every figure of every contestant."""
        return {
            contestant: {
                figure: [statistics.median(values), min(values), max(values)] for figure, values in figures.items()
            }
            for contestant, figures in self._seen.items()
        }

    def compose(self) -> dict[str, Any]:
        """Return what stands in the file of results: the figures, and what they were taken with."""
        figures = {
            contestant: {figure: [round_off(number) for number in numbers] for figure, numbers in seen.items()}
            for contestant, seen in self.summarise().items()
        }
        return {
            "when": self.began.isoformat(timespec="seconds"),
            "how": "short" if self.short else "reduced" if self.reduced else "full",
            "load": [round(min(self.loads, default=0.0), 1), round(max(self.loads, default=0.0), 1)],
            "machine": describe_machine(),
            "versions": self.versions,
            "settings": self.settings,
            "absent": self.absent,
            "median, from, to": figures,
        }

    def write(self, folder: Path) -> Path:
        """Write the file of results into a folder, which is made where it is not there, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        lines = [f"{json.dumps(name)}: {_write_part(part)}" for name, part in self.compose().items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return path


def round_off(number: float) -> float:
    """Return a figure cut to what it can tell: four significant digits, whole units above 1,000."""
    return round(number) if abs(number) >= 1000 else float(f"{number:.4g}")


def write_number(number: float) -> str:
    """Return a number for reading: three significant digits, thousands with commas."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def _write_part(part: Any) -> str:
    """Return a part of the results, a line for each contestant."""
    if not isinstance(part, dict) or not any(isinstance(value, dict) for value in part.values()):
        return json.dumps(part)
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in part.items()) + "\n}"
