"""A plugin of pytest: what each test reaches, itself or in processes that it starts, and the CPU that it costs."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from quick import children

NAMED_IN_SQL = re.compile(r'\browferry\."?(\w+)')
ONLY_NAMES = re.compile(r"(?:\s|--[^\n]*\n)*(?:create|grant|revoke|do)\b", re.IGNORECASE)
"""A statement that runs nothing of what it names: rowferry's functions are made and granted in each new database."""
TICKS = os.sysconf("SC_CLK_TCK")
PARENT, USED, USED_BY_ENDED = 0, slice(10, 14), slice(12, 14)
"""Where in `read_fields` the parent is, and the ticks of a process: user, system, and both of its ended children."""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "quick-recorder")


class Recorder:
    """Records in one process of the tests; `make quick-list` runs them under xdist."""

    def __init__(self) -> None:
        self._file = children.FOLDER / str(os.getpid())
        self._file.write_text("")
        self._tests = (children.FOLDER / f"tests-{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self._named: set[str] = set()
        self._is_must = import_module("support.running.quick").is_must  # a plugin, which pytest imports first
        self._measured = children.begin(None)
        note_statements(self._named)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        name = item.nodeid.rpartition("@")[0] if item.get_closest_marker("xdist_group") else item.nodeid
        self._file.write_text(name, encoding="utf-8")
        self._measured.switch_context(name)
        self._named.clear()
        before = read_cpu_seconds()
        result = yield
        cost = read_cpu_seconds() - before
        self._measured.switch_context("")
        marks = ["must"] * self._is_must(item) + ["fast"] * bool(item.get_closest_marker("fast"))
        found = {"test": name, "cpu_seconds": round(cost, 3), "marks": marks, "sql": sorted(self._named)}
        self._tests.write(json.dumps(found) + "\n")
        return result

    def pytest_sessionfinish(self) -> None:
        self._tests.close()
        self._file.write_text("")


def note_statements(named: set[str]) -> None:
    """From now on add to `named` each function, view and table of rowferry that a statement of this process uses."""
    execute: Callable[..., Any] = psycopg.Cursor.execute

    def note(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        text = query.as_string(cursor) if isinstance(query, sql.Composable) else query
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if not ONLY_NAMES.match(text):
            named.update(NAMED_IN_SQL.findall(text))
        return execute(cursor, query, *arguments, **options)

    pytest.MonkeyPatch().setattr(psycopg.Cursor, "execute", note)


def read_cpu_seconds() -> float:
    """Return what this process and all that descend from it have used, those that have ended included.

    The kernel counts an ended process with its parent. Its list of a process's children may lack some: all are asked.
    """
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    parents = {pid: children.read_fields(pid) for pid in pids}
    ticks, ours = 0, {os.getpid()}
    while ours:
        ours = {pid for pid, fields in parents.items() if fields[PARENT] in ours}
        ticks += sum(sum(parents[pid][USED]) for pid in ours)
    return time.process_time() + (sum(children.read_fields(os.getpid())[USED_BY_ENDED]) + ticks) / TICKS
