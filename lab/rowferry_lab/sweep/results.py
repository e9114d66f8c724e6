"""What a sweep leaves behind: a CSV that is complete up to the last run at any moment, and a JSON document."""

import csv
import os
import platform
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rowferry import __version__
from rowferry.errors import UsageError
from rowferry_lab.sweep.grid import AUTO, Grid, Recommendation, Result, Summary

COLUMNS = (
    "kind",
    "number",
    "batch_size",
    "parallel",
    "repetition",
    "entries",
    "seconds",
    "entries_per_second",
    "entries_per_second_stdev",
    "worker_cpu_seconds",
    "server_cpu_share",
    "correct",
)
"""`kind` is `run`, or `summary` where a row stands for all correct runs of a setting."""


def _name(parallel: int) -> int | str:
    return parallel if parallel != AUTO else "auto"


def describe_result(result: Result) -> dict[str, Any]:
    """Return a run as plain data; times in seconds."""
    return {
        "number": result.trial.number,
        "batch_size": result.trial.setting.batch_size,
        "parallel": _name(result.trial.setting.parallel),
        "repetition": result.trial.repetition,
        "entries": result.entries,
        "seconds": round(result.duration.total_seconds(), 3),
        "entries_per_second": round(result.rate, 1),
        "worker_cpu_seconds": round(result.worker_cpu.total_seconds(), 2),
        "server_cpu_share": round(result.server_share, 3),
        "correct": not result.problems,
    }


def describe_summary(summary: Summary) -> dict[str, Any]:
    """Return the runs of a setting as plain data."""
    return {
        "batch_size": summary.setting.batch_size,
        "parallel": _name(summary.setting.parallel),
        "runs": summary.runs,
        "entries_per_second": round(summary.mean, 1),
        "entries_per_second_stdev": round(summary.stdev, 1),
        "server_cpu_share": round(summary.server_share, 3),
    }


def describe_sweep(
    grid: Grid, results: Sequence[Result], summaries: Sequence[Summary], recommendation: Recommendation | None
) -> dict[str, Any]:
    """Return everything as plain data."""
    return {
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "settings": {
            "batch_sizes": list(grid.batch_sizes),
            "parallels": [_name(parallel) for parallel in grid.parallels],
            "repetitions": grid.repetitions,
            "entries": grid.entries,
            "latency_seconds": grid.latency.total_seconds(),
            "seed": grid.seed,
        },
        "runs": [{**describe_result(result), "problems": list(result.problems)} for result in results],
        "summary": [describe_summary(summary) for summary in summaries],
        "recommendation": recommendation
        and {
            "batch_size": recommendation.setting.batch_size,
            "parallel": _name(recommendation.setting.parallel),
            "why": list(recommendation.why),
        },
    }


class CsvFile(AbstractContextManager["CsvFile"]):
    """The CSV, written line by line; does nothing where no file was asked for."""

    def __init__(self, path: Path | None) -> None:
        """Begin the file at once, so that a place where nothing can be written is known before the first run.

        Raises UsageError when it cannot be written.
        """
        try:
            self._file = path.open("w", encoding="utf-8", newline="") if path else None
        except OSError as error:
            raise UsageError(f"The CSV {path} cannot be written: {error.strerror}.") from error
        self._writer = csv.DictWriter(self._file, COLUMNS) if self._file else None
        if self._writer:
            self._writer.writeheader()

    def __enter__(self) -> Self:
        """Return itself; the end of the block closes the file."""
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def add_result(self, result: Result) -> None:
        """Add the line of a run."""
        self._add({"kind": "run", **describe_result(result)})

    def add_summary(self, summary: Summary) -> None:
        """Add the line of a setting; its repetition is how many runs it stands for."""
        facts = describe_summary(summary)
        self._add({"kind": "summary", **facts, "repetition": facts.pop("runs"), "correct": True})

    def _add(self, facts: dict[str, Any]) -> None:
        if self._writer and self._file:
            self._writer.writerow({name: facts.get(name, "") for name in COLUMNS})
            self._file.flush()
