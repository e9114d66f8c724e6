"""What a check could not scan is a sentence: it names the table, says why, and what would let it."""

from datetime import timedelta

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry_enqueue.check import Finding, check_plan
from rowferry_enqueue.checks.buckets import objects
from support.entries.checks import add_second_table, check, check_as_role, entries_of
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.postgres.said_stable import allow_functions

LABEL = "public.avatars.path"
BANNERS = "public.banners.path"
UNKNOWN = "what their keys become, and whether two objects get one key, is not known"
USABLE = f"{BANNERS}: 1 legacy entry with usable production keys"
TIMEOUT = f"{LABEL} could not be scanned: canceling statement due to statement timeout"


def check_within(migration: Migration, timeout: str) -> list[Finding]:
    """Check as a role whose statements end after a time, as many providers set it."""
    with connect("check", autocommit=True) as connection:
        connection.execute(f"set statement_timeout = '{timeout}'".encode())
        return list(check_plan(connection, migration.read_plan(), allow_empty=True))


def problems_of(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings if finding.level == "problem"]


def whats(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings]


@pytest.fixture(autouse=True)
def _allowed(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_functions(migration, monkeypatch)


def sleep_in(migration: Migration, words: str) -> None:
    """Let the statements over the first table that have these words take longer than any timeout."""
    found = f"'{words[0]}' || '{words[1:]}'"  # for `where` is in each of them
    entries_of(migration)["where"] = f"position({found} in public.asked()) = 0 or public.nap(60) is not null"


@pytest.fixture
def two(migration: Migration) -> Migration:
    """Two tables, and a row in each whose object exists."""
    migration.fill(1)
    add_second_table(migration)
    entries_of(migration)["to"] = "elsewhere/"
    migration.execute("insert into public.banners select id, path from public.avatars")
    return migration


def test_a_scan_that_takes_too_long_is_told_once_and_the_others_go_on(two: Migration) -> None:
    assert not [what for what in whats(check(two)) if "scanned" in what]
    sleep_in(two, "select")
    findings = check_within(two, "2s")
    assert problems_of(findings) == [TIMEOUT]
    (found,) = [finding for finding in findings if finding.what == TIMEOUT]
    assert "PGOPTIONS='-c statement_timeout=0'" in found.remedy
    told = {f"not scanned: {LABEL}; {UNKNOWN}", USABLE, f"{BANNERS}: 1 of 1 sampled legacy objects exist"}
    assert told <= set(whats(findings))


def test_each_scan_that_takes_too_long_names_its_table(migration: Migration) -> None:
    migration.fill(1).insert({migration.id_of(2): f"{TO}u1/me.png"})
    compared = f"{LABEL} could not be compared: canceling statement due to statement timeout"
    for words, expected in (("hashtext", TIMEOUT), ("with pairs", compared), ("as_it_is", TIMEOUT)):
        sleep_in(migration, words)
        if words == "as_it_is":
            entries_of(migration)["where"] += " or path is null"
        assert {expected} == {*problems_of(check_within(migration, "2s"))}
    sleep_in(migration, "k.legacy_key = any(")
    (found,) = [what for what in whats(check_within(migration, "2s")) if "folders of the legacy bucket" in what]
    assert f"is not known: {LABEL} could not be scanned" in found


def test_a_locked_table_is_told_with_what_waits_for_it(two: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_LOCK_TIMEOUT", "1s")
    with psycopg.connect(two.dsn) as holding:
        holding.execute("lock table public.avatars in access exclusive mode")
        findings = check(two)
    (found,) = [finding for finding in findings if finding.level == "problem"]
    assert found.what == f"{LABEL} could not be scanned: canceling statement due to lock timeout"
    assert "ROWFERRY_LOCK_TIMEOUT" in found.remedy
    assert f"not scanned: {LABEL}; {UNKNOWN}" in whats(findings)


def test_a_table_that_may_not_be_read_is_told_beside_those_that_were_scanned(two: Migration) -> None:
    said = whats(check_as_role(two, "select, update on public.banners"))
    assert any("this role may not select" in what and "public.avatars" in what for what in said)
    assert {f"not scanned: {LABEL}; {UNKNOWN}", USABLE} <= set(said)


def test_samples_that_were_not_looked_at_in_time_are_counted(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.fill(3)
    monkeypatch.setattr(objects, "TIME_LIMIT", timedelta(seconds=-1))
    for names, thing in (("object", "sampled legacy objects"), ("folder", "sampled folders")):
        entries_of(migration)["names"] = names
        words = f"{LABEL}: 3 {thing} were not looked at, since the legacy server took more than"
        assert any(words in what for what in whats(check(migration)))
