"""What PostgreSQL does for a statement, those inside of functions included: the plans that auto_explain tells."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from support.postgres.ordinary import set_as_administrator

SETTINGS = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_buffers": "on",
    "log_timing": "off",
    "log_format": "json",
    "log_level": "notice",
}

END = "select 1 as the_end"
LOOK = "select\n    pg_stat_get_xact_tuples_returned"
"""How the call of rowferry.find_oldest begins (sql/queries/worker.sql)."""


@dataclass(frozen=True)
class Plan:
    """One statement that was executed."""

    text: str
    nodes: list[Mapping[str, Any]]
    """All of them, the top one first."""
    compiled: bool
    """Whether PostgreSQL compiled its expressions (JIT)."""

    @property
    def touched(self) -> int:
        """Pages that were read, wherever they were."""
        return self.nodes[0]["Shared Hit Blocks"] + self.nodes[0]["Shared Read Blocks"]

    @property
    def kinds(self) -> set[str]:
        return {node["Node Type"] for node in self.nodes}

    @property
    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    @property
    def tables(self) -> set[str]:
        return {node["Relation Name"] for node in self.nodes if "Relation Name" in node}

    def scanned(self) -> set[str]:
        """Return the tables that were read from end to end."""
        return {node["Relation Name"] for node in self.nodes if node["Node Type"].endswith("Seq Scan")}

    def most_rows(self) -> float:
        """Return the largest number of rows that a node returned or threw away."""
        removed = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        return max(node.get(name, 0) * node.get("Actual Loops", 1) for node in self.nodes for name in removed)


class Plans:
    """The plans of one connection's statements, in the order in which they ended."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._told: list[Plan] = []

    def note(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        words = diagnostic.message_primary or ""
        if "plan:\n" in words:
            document = json.loads(words.split("plan:\n", 1)[1])
            self._told.append(Plan(document["Query Text"], list(flatten(document["Plan"])), "JIT" in document))

    def take(self) -> list[Plan]:
        """Return what was told since the last time."""
        self._connection.execute(END)  # A statement is told of when the next one takes its place.
        taken = [plan for plan in self._told if plan.text != END and (plan.tables or "set_config" not in plan.text)]
        self._told.clear()
        return taken

    def take_inner(self) -> list[Plan]:
        """Return the same without the calls of functions: the statements inside of them alone."""
        calls = ("select * from rowferry.", LOOK)
        return [plan for plan in self.take() if not plan.text.startswith(calls)]


@contextmanager
def explained(connection: psycopg.Connection[Any]) -> Iterator[Plans]:
    """Note the plan of each statement of this connection, and roll back in the end."""
    plans = Plans(connection)
    set_as_administrator(connection, {f"auto_explain.{name}": value for name, value in SETTINGS.items()})
    connection.add_notice_handler(plans.note)
    try:
        yield plans
    finally:
        connection.remove_notice_handler(plans.note)
        connection.rollback()


def flatten(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from flatten(below)
