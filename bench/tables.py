"""Write the figures of `bench/results` into the pages that tell them, each between the two comments that name it.

    python -m bench.tables

A cell of a pace is what a contestant does while it runs and, in brackets, from the start of its process to its end.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.record import RESULTS, write_number

ROOT = Path(__file__).parent.parent
MEASUREMENTS, README = ROOT / "docs" / "internals" / "measurements.md", ROOT / "README.md"
Figures = Mapping[str, list[float]]
"""Of one contestant: median, smallest and largest of each figure."""
SHOWN = {"stub, 10 ms": "10 ms", "stub, 70 ms": "70 ms"}
"""The rows of README's table, and what it calls them: what a user at such a latency gets."""
COMPARED = ("rowferry", "rclone", "s5cmd")
"""Its columns."""


def write_pace(figures: Figures) -> str:
    """Return objects a second."""
    return (
        f"{write_number(figures['objects_per_second_running'][0])} ({write_number(figures['objects_per_second'][0])})"
    )


def write_megabytes(figures: Figures) -> str:
    """Return MB a second."""
    per_object = figures["megabytes_per_second"][0] / figures["objects_per_second"][0]
    running = write_number(figures["objects_per_second_running"][0] * per_object)
    return f"{running} ({write_number(figures['megabytes_per_second'][0])})"


def write_cost(figures: Figures) -> str:
    """Return the client's CPU in ms an object, and its memory in MB."""
    return f"{write_number(figures['cpu_ms_per_object'][0])} ms, {write_number(figures['memory_mb'][0])} MB"


TABLES: tuple[tuple[Path, str, str, Callable[[Figures], str]], ...] = (
    (MEASUREMENTS, "copy", "copy pace", write_pace),
    (MEASUREMENTS, "copy", "copy cost", write_cost),
    (MEASUREMENTS, "stream", "stream pace", write_megabytes),
    (MEASUREMENTS, "stream", "stream cost", write_cost),
    (README, "copy", "latency pace", lambda figures: write_number(figures["objects_per_second_running"][0])),
)
"""The page, the bench, the name of the table, and what stands in a cell."""


def tabulate(record: Mapping[str, Any], write: Callable[[Figures], str], shown: Mapping[str, str] | None) -> str:
    """Return a table: a row for each server, size and latency, a column for each contestant. `shown`: some rows.

    Raises ValueError where the record has none of these.
    """
    rows: dict[str, dict[str, str]] = {}
    for name, figures in record["median, from, to"].items():
        contestant, _, where = name.partition(", ")
        if shown is None or (where in shown and contestant in COMPARED):
            rows.setdefault(where if shown is None else shown[where], {})[contestant] = write(figures)
    if not rows:
        raise ValueError("nothing was measured that this table shows")
    heads = list(dict.fromkeys(who for row in rows.values() for who in row))
    lines = [["", *heads], ["---"] * (len(heads) + 1)]
    lines += [[where, *(row.get(who, "") for who in heads)] for where, row in rows.items()]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def replace_table(page: str, name: str, table: str) -> str:
    """Return a page with a table between its comments. Raises ValueError where the page has none of that name."""
    found = re.compile(rf"(<!-- Written by `make figures`: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    written, count = found.subn(lambda match: f"{match[1]}\n{table}\n{match[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} tables of `make figures` that are named {name}")
    return written


def compose_pages() -> dict[Path, str]:
    """Return each page with its tables as the records have them. Raises ValueError as the other functions do."""
    pages = {path: path.read_text(encoding="utf-8") for path, *_ in TABLES}
    for path, bench, name, write in TABLES:
        record = json.loads((RESULTS / f"{bench}.json").read_text(encoding="utf-8"))
        table = tabulate(record, write, SHOWN if path == README else None)
        pages[path] = replace_table(pages[path], name, table)
    return pages


def main() -> None:
    """Write each table, once all of them are known."""
    for path, page in compose_pages().items():
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
