"""A plugin of pytest: which tests are of the fast tier, which are for the night, and which go together."""

import gc
from functools import cache
from types import FunctionType, ModuleType

import pytest
from hypothesis import given
from hypothesis.strategies import none

from support.running.by_day import is_nightly

SERVERS = {
    "database_servers",
    "distribution_postgres",
    "moto",
    "versitygw",
    "s3_server",
    "any_migration",
    "log",
    "logged_migration",
    "quick_buckets",
}
"""Fixtures that stand for a server: a test that needs none of them, directly or not, may be of the fast tier."""

STARTS_PROCESSES = {
    *("bench", "conformance", "rowferry_lab.servers.postgres", "rowferry_lab.servers.s3_servers", "subprocess"),
    *("support.postgres.pgbouncer", "support.processes.cli", "support.processes.prometheus_server"),
    *("support.processes.several_hosts", "support.processes.terminal", "support.processes.worker_process"),
    *("support.secrets.environment", "torture"),
}
"""Modules that start processes: a file of tests that takes something from one of them is not of the fast tier."""


def needs_server(item: pytest.Item) -> bool:
    return bool(SERVERS.intersection(getattr(item, "fixturenames", ())))


def is_fast(item: pytest.Item) -> bool:
    """Return whether a test starts no process: no server, no command, no worker."""
    if needs_server(item) or item.get_closest_marker("soak"):
        return False
    module = item.getparent(pytest.Module)
    return module is None or not starts_processes(module.obj)


@cache
def starts_processes(module: ModuleType) -> bool:
    """Return whether a file of tests takes something from a module that starts processes."""
    taken = vars(module).values()
    sources = {value.__name__ for value in taken if isinstance(value, ModuleType)}
    sources |= {value.__module__ for value in taken if isinstance(value, FunctionType | type)}
    return any(source == name or source.startswith(f"{name}.") for source in sources for name in STARTS_PROCESSES)


def keep_group(item: pytest.Item) -> None:
    """Write the group of a test into its id, by which xdist sends a whole group to one worker.

    xdist 3.8 writes it into an attribute that pytest 9.2 does not read any more.
    """
    mark = item.get_closest_marker("xdist_group")
    if mark and hasattr(item, "_id") and hasattr(item.config, "workerinput"):
        item._id = type(item._id).parse(f"{item.nodeid}@{mark.args[0]}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast tier, and run it first; then what has to run one after the other, since that ends last."""
    for item in items:
        if item.get_closest_marker("texts") and needs_server(item):
            raise pytest.UsageError(f"{item.nodeid} is marked texts, but needs a server: move it to another file.")
        if is_nightly(item):
            item.add_marker(pytest.mark.soak)
        if is_fast(item):
            item.add_marker(pytest.mark.fast)
        keep_group(item)
    items.sort(key=lambda item: (not item.get_closest_marker("fast"), not item.get_closest_marker("xdist_group")))


def pytest_collection_finish() -> None:
    """Exempt all objects made so far from garbage collection, which looked at all of them for each test."""
    begin_hypothesis()
    gc.collect()
    gc.freeze()


@given(none())
def begin_hypothesis(_: None) -> None:
    """Run hypothesis once before `gc.freeze`: it uses `gc.get_referrers`, which does not see frozen objects."""
