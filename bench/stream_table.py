"""Streams of each size on each server against rclone's: a table of docs/speed.md, from the record of `stream`."""

from collections.abc import Iterable
from typing import Any

from bench.record import INCLUDED

HEAD = """\
| objects of | server | MB/s, running | MB/s, from start to end | CPU a MB, from start to end |
| --- | --- | --- | --- | --- |"""
COLUMNS = "megabytes_per_second", "megabytes_per_second" + INCLUDED, "cpu_ms_per_mb" + INCLUDED
"""The CPU of rclone is known of whole runs alone."""


def compose_streams(results: Iterable[dict[str, Any]]) -> str:
    """Return a row for each size and server; empty where the bench has no record."""
    summary = next((result["summary"] for result in results if result["name"] == "stream"), {})
    lines = [HEAD]
    for name, ours in summary.items():
        who, _, group = name.partition(", ")
        theirs = summary.get(f"rclone, {group}")
        if who == "rowferry" and theirs is not None:
            cells = " | ".join(compare(ours, theirs, figure) for figure in COLUMNS)
            lines.append(f"| {group.replace(', ', ' | ', 1)} | {cells} |")
    return "\n".join(lines) if len(lines) > 1 else ""


def compare(ours: dict[str, Any], theirs: dict[str, Any], figure: str) -> str:
    """Return the ratio of two medians; a dash where one of them was not measured."""
    if figure not in ours or figure not in theirs:
        return "–"
    return f"{ours[figure]['median'] / theirs[figure]['median']:.2f}x"
