"""docs/speed.md: its table of figures is made from bench/results/*.json, so that it always equals them."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench import BENCHES
from bench.record import RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "speed.md"

BEGIN, END = "<!-- figures: written by `make bench` -->\n", "<!-- end of figures -->"

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
    """Return what was asked for, the bound, the figure and the verdict, in words."""
    bounds = [
        f"{sign} {write_number(target[bound])}{target['unit']}"
        for sign, bound in (("≥", "at_least"), ("≤", "at_most"))
        if target[bound] is not None
    ]
    seen = f"{write_number(target['seen'])}{target['unit']}"
    verdict = "reported" if not bounds else "yes" if target["reached"] else "no"
    return target["what"], " and ".join(bounds), seen, verdict


def write_number(number: float) -> str:
    """Return a number for reading: three significant digits, thousands with commas."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def compose_table(results: Iterable[Result]) -> str:
    """Return the table of all targets in Markdown."""
    lines = ["| bench | what | target | seen | reached |", "| --- | --- | --- | --- | --- |"]
    for result, target in list_targets(results):
        lines.append(f"| `{result['name']}` | " + " | ".join(describe_target(target)) + " |")
    return "\n".join(lines) + "\n"


def fill_in(text: str, results: list[Result]) -> str:
    """Return the page with its block of figures made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{compose_table(results)}\n{END}{tail}"


def rewrite_page() -> None:
    """Bring the page to the results."""
    if PAGE.exists():
        PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), read_results()), encoding="utf-8")
