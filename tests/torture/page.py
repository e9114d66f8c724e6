"""The results of `make torture`: the file that keeps them, and the table of docs/internals/torture.md."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torture.scenarios import SCENARIOS

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parent.parent.parent / "docs" / "internals" / "torture.md"
BEGIN, END = "<!-- Written by `make torture`: begin -->", "<!-- end -->"
HEAD = """\
| scenario | what was done | faults injected | entries | audits | violations | seconds | seed |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"""

Result = Mapping[str, Any]


def read_results() -> list[Result]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def record(results: Iterable[Result]) -> None:
    """Put these results in the place of older ones of the same scenarios, in the file and on the page.

    What was skipped takes the place of nothing that was done.
    """
    by_name = {result["scenario"]: result for result in read_results()}
    for result in results:
        if result["entries"] or result["scenario"] not in by_name:
            by_name[result["scenario"]] = result
    kept = [by_name[name] for name in SCENARIOS if name in by_name]
    RESULTS.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


def fill_in(page: str, results: Iterable[Result]) -> str:
    """Return the page with the table of these results between its marks."""
    table = "\n".join([HEAD, *map(compose_row, results)])
    marked = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    return marked.sub(lambda _: f"\n{table}\n\n", page)


def compose_row(result: Result) -> str:
    numbers = (f"{result[name]:,}" for name in ("entries", "audits", "violations", "seconds"))
    if result["skipped"] and not result["entries"]:
        numbers = "–" * 4
    return f"| {' | '.join([result['scenario'], result['what'], tell_faults(result), *numbers, str(result['seed'])])} |"


def tell_faults(result: Result) -> str:
    """Return the faults that came, those that never did, and what could not be done."""
    words = [f"{count:,} {kind}" for kind, count in result["faults"].items() if count]
    words += [f"**never came: {kind}**" for kind in result["missing"]]
    return ", ".join(words + [f"**skipped: {reason}**" for reason in result["skipped"]])
