"""The targets of results, in words."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench import BENCHES
from bench.record import RESULTS

Result = dict[str, Any]


def read_results(folder: Path = RESULTS, names: Iterable[str] = BENCHES) -> list[Result]:
    """Return the results in a folder in the order of the benches; a bench that has none is left out."""
    paths = [folder / f"{name}.json" for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def list_targets(results: Iterable[Result]) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Yield every target with the result that it belongs to."""
    for result in results:
        for target in result["targets"]:
            yield result, target


def describe_target(target: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return what was asked for and where it was worst, the bound, the figure and the verdict, in words."""
    bounds = [
        f"{sign} {write_number(target[bound])}{target['unit']}"
        for sign, bound in (("≥", "at_least"), ("≤", "at_most"))
        if target[bound] is not None
    ]
    seen = f"{write_number(target['seen'])}{target['unit']}"
    verdict = "reported" if not bounds else "yes" if target["reached"] else "no"
    server = target.get("server")
    what = f"{target['what']}, at worst: {server}" if server else target["what"]
    return what, " and ".join(bounds), seen, verdict


def write_number(number: float) -> str:
    """Return a number for reading: three significant digits, thousands with commas."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"
