"""Grafana's role reads, and not for long: whoever reaches Grafana can send any SQL as this role."""

import psycopg
import pytest
from psycopg import errors

from rowferry.db.connection import connect
from rowferry_cli.setup.grants import PURPOSES, apply_limits, compose_limits
from rowferry_exporter.collector import read_views
from support.checkout import ROOT
from support.entries.entry_table import trusted
from support.entries.migration import Migration
from support.postgres.ordinary import administrator
from support.postgres.roles import log_in, new_role
from support.processes.cli import well

SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "1min",
    "jit": "off",
}


@pytest.mark.versions
def test_a_session_of_grafana_only_reads_and_not_for_long(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.write_plan()
    with new_role(migration.dsn) as role:
        words = migration.run_here("init", "--grants", role, "--for", "grafana").stdout
        with administrator(migration.dsn) as connection:
            connection.execute(trusted(words))
        with psycopg.connect(log_in(migration, role), autocommit=True) as connection:
            found = {name: connection.execute(trusted(f"show {name}")).fetchone() for name in SETTINGS}
            assert found == {name: (value,) for name, value in SETTINGS.items()}
            with pytest.raises(errors.ReadOnlySqlTransaction):
                connection.execute("create temp table filling_the_disk (word text)")
        monkeypatch.setenv("DATABASE_URL", log_in(migration, role))
        with connect("exporter", autocommit=True) as connection:
            assert read_views(connection).rows["exporter_queues"] == []


def test_who_may_not_change_a_role_is_told_to_have_it_changed(migration: Migration) -> None:
    migration.write_plan()
    with new_role(migration.dsn) as role:
        done = well(migration.run_here("init", "--grants", role, "--for", "grafana", "--apply"))
        said, _, left = done.stdout.partition(
            f"-- NOT RUN, since you may not change the role {role}: let an administrator run this.\n"
        )
        assert "grant select on" in said
        assert left.count("alter role") == len(SETTINGS)
        with psycopg.connect(log_in(migration, role)) as connection:
            assert connection.execute("select count(*) from rowferry.progress").fetchone() == (0,)


def test_who_may_change_a_role_sets_its_limits(migration: Migration) -> None:
    with new_role(migration.dsn) as role, administrator(migration.dsn) as connection:
        limits = compose_limits(role, ["grafana"])
        assert limits is not None
        assert apply_limits(connection, limits) is True


def test_a_role_that_also_works_is_not_kept_from_writing() -> None:
    assert compose_limits("everything", PURPOSES) is None


def test_composes_role_of_grafana_has_the_same_limits() -> None:
    limits = compose_limits("rowferry_grafana", ["grafana"])
    assert limits is not None
    settings = {line for line in limits.as_string().replace('"', "").splitlines() if line.startswith("alter role")}
    assert len(settings) == len(SETTINGS)
    assert settings <= set((ROOT / "compose" / "grafana-role.sql").read_text().splitlines())
