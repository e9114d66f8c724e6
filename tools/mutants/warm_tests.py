"""The collected tests of a module, with the servers that they need started once, before any fork."""

import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

SERVERS = {
    "moto": {"moto", "s3_server", "any_migration"},
    "versitygw": {"versitygw", "s3_server", "any_migration", "log"},
    "database_servers": {"database_servers"},
}
"""Fixtures of a whole session that are started once, and the fixtures that lead to them."""


class WarmTests:
    """A plugin of pytest: the items that it has collected, run one at a time."""

    def __init__(self) -> None:
        self.items: dict[str, pytest.Item] = {}
        self.databases: Any = None
        """`DatabaseServers` of the tests, where they need one."""
        self._reports: list[pytest.TestReport] = []
        self._keeper: pytest.Function | None = None

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Set the profile after every conftest.py has set its own: a mutant's counterexample need not be shrunk."""
        from hypothesis import Phase, settings  # noqa: PLC0415 - its own plugin has to come first

        del collector
        if settings.get_current_profile_name() != "mutants":
            phases = (Phase.explicit, Phase.generate)
            settings.register_profile(
                "mutants", settings(derandomize=True, deadline=None, database=None, phases=phases)
            )
            settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def start(self, items: list[pytest.Item]) -> None:
        """Start the servers that these tests need, and nothing that has a thread; raises UsageError if one fails."""
        self.items = {item.nodeid: item for item in items}
        asked = {name for item in items for name in getattr(item, "fixturenames", ())}
        needed = [name for name, leads in SERVERS.items() if asked & leads]
        if not needed:
            return

        def keep(request: pytest.FixtureRequest) -> None:
            for name in needed:
                self._start_server(request, name)

        self._keeper = pytest.Function.from_parent(find_common(items), name="keeps the servers", callobj=keep)
        if failed := self.run_item(self._keeper, items[0]):
            raise pytest.UsageError(f"The servers do not start:\n{failed}")

    def _start_server(self, request: pytest.FixtureRequest, name: str) -> None:
        try:
            found = request.getfixturevalue(name)
        except pytest.skip.Exception:
            return
        if name == "database_servers":
            self.databases = found
            with found.fresh_database(sys.modules["support.postgres.servers"].POSTGRES):
                pass  # from now on the server runs and has its template

    def run(self, test: str, after: str | None = None) -> str:
        """Run one test; return how it failed, or nothing. Fixtures that the test `after` shares are kept for it."""
        return self.run_item(self.items[test], self.items[after] if after else None)

    def run_item(self, item: pytest.Item, after: pytest.Item | None) -> str:
        self._reports.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after or self._keeper)
        return "\n".join(report.longreprtext for report in self._reports if report.failed)

    @property
    def was_skipped(self) -> bool:
        """Whether the last test was."""
        return any(report.skipped for report in self._reports)

    @property
    def seconds(self) -> float:
        """What the last test took, with its fixtures."""
        return sum(report.duration for report in self._reports)

    def find_logs(self) -> list[Path]:
        """Return the log of each PostgreSQL that runs."""
        return [server.folder / "server.log" for server in self.databases._servers.values()]  # noqa: SLF001

    def execute_in_servers(self, *statements: str, template: bool = False) -> None:
        """Execute statements as superuser in each PostgreSQL that runs, or in its template. Raises psycopg.Error."""
        name = sys.modules["support.postgres.servers"].TEMPLATE if template else "postgres"
        for server in self.databases._servers.values():  # noqa: SLF001 - the fixture has no other way to its servers
            with psycopg.connect(server.dsn(name), autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement.encode())


def find_common(items: list[pytest.Item]) -> pytest.Collector:
    """Return the folder, or the session, that all of these tests are in."""
    shared = set(items[0].listchain()).intersection(*(item.listchain() for item in items))
    folders = [node for node in shared if not isinstance(node, pytest.Module | pytest.Class | pytest.Item)]
    found = max(folders, key=lambda node: len(node.listchain()))
    assert isinstance(found, pytest.Collector)
    return found
