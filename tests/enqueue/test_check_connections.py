"""`rowferry check` says in a line which connections others could read, or whose server could be another one."""

import pytest

from rowferry.db.connection import connect
from rowferry.plan_file import parse_plan
from rowferry_enqueue.checks.rows import connections
from rowferry_enqueue.checks.rows.connections import check_connections, is_local, judge_database
from support.entries.migration import Migration


@pytest.mark.parametrize(
    ("sslmode", "is_encrypted", "said"),
    [
        ("prefer", False, "PostgreSQL at db.internal is reached without TLS"),
        ("require", True, "is not checked (sslmode=require)"),
        ("prefer", True, "is not checked (sslmode=prefer)"),
        ("verify-ca", True, "may be that of another host (sslmode=verify-ca)"),
        ("verify-full", True, None),
    ],
)
def test_a_session_that_is_not_fully_checked_is_told(sslmode: str, is_encrypted: bool, said: str | None) -> None:
    found = list(judge_database("db.internal", sslmode, is_encrypted=is_encrypted))
    assert [finding.level for finding in found] == ["note"] * (said is not None)
    assert said is None or (said in found[0].what and "verify-full" in found[0].remedy)


def test_this_host_is_no_network_and_everything_else_is() -> None:
    assert all(map(is_local, ("", "/run/postgresql", "@socket", "localhost", "127.0.0.9", "::1")))
    assert not any(map(is_local, ("db.internal", "10.0.0.9", "localhost.example.com", "::2")))


def test_check_tells_of_every_plain_endpoint_and_of_the_database_and_of_none_on_this_host(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The servers of the tests are on this host, so another one is made of it."""
    migration.write_plan().fill(1)
    assert "without TLS" not in migration.run_here("check").stdout
    monkeypatch.setattr(connections, "is_local", lambda _host: False)
    said = migration.run_here("check").stdout
    assert said.count("PostgreSQL at 127.0.0.1 is reached without TLS") == 1
    url = migration.legacy.endpoint_url
    assert said.count(f"the legacy and the production buckets are reached at {url} without TLS") == 1


def test_an_endpoint_with_tls_and_one_of_aws_are_not_told(database: str) -> None:
    document = {
        "migration": {"name": "m"},
        "legacy": {"bucket": "a"},
        "production": {"bucket": "b", "endpoint_url": "https://s3.example.com"},
        "objects": [{"prefix": "image/"}],
    }
    with connect("test") as connection:
        assert list(check_connections(connection, parse_plan(document, "here"))) == []
