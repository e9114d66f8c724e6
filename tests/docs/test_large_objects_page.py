"""docs/large-objects.md: its plans and commands do what it says, and its table has all settings."""

import os
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rowferry.plan import QueueSettings
from rowferry_queues.parts.spec import PartsSettings
from support.docs.doc_pages import ROOT, Block, read_blocks, read_plan_document, read_section, read_table
from support.entries.entry_table import FROM
from support.entries.parts_site import BODY, NAME, PARTS, MakeMigration, Site, site_on_fake
from support.processes.processes import run_to_end

PAGE = ROOT / "docs" / "large-objects.md"
SHARE, AHEAD = "Share one object among workers", "Copy ahead, then only what has changed"


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    with site_on_fake(make_migration) as site:
        site.migration.add(1, NAME, BODY)
        site.migration.add(2, "small.png", b"small")
        yield site


def block_of(heading: str, language: str) -> Block:
    """Return the only block of a section in this language; another section may have the same."""
    found = [block for block in read_blocks(language, pages=[PAGE]) if block.text in read_section(PAGE, heading)]
    assert len({block.text for block in found}) == 1
    return found[0]


def take_plan(site: Site, heading: str, **own: Any) -> None:
    """Take the plan of the page as it is, but for the buckets and the size of what is large."""
    shown = read_plan_document(block_of(heading, "toml"))
    assert shown["entries"] == site.migration.plan["entries"]
    least = {"least_bytes": len(BODY)}
    site.migration.plan["queue"] = {"parts": {**shown["queue"]["parts"], **least, **own}}
    site.migration.write_plan()


def run_command(site: Site, heading: str) -> str:
    script = f'rowferry() {{ {shlex.quote(sys.executable)} -m rowferry_cli "$@"; }}\n{block_of(heading, "sh").text}'
    migration = site.migration
    environment = {**os.environ, **migration.environment}  # for parts as small as those of this process
    done = run_to_end(["sh", "-ec", script], typed="y\n", env=environment, cwd=migration.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.site
def test_one_command_is_the_whole_migration(site: Site) -> None:
    take_plan(site, SHARE)
    run_command(site, SHARE)
    site.check_arrived()
    assert site.count(site.object_batches()) == {"migrated": 1, "kept": 1}
    assert site.count(site.part_batches()) == {"migrated": PARTS}
    site.migration.audit()


@pytest.mark.site
def test_copies_are_brought_up_to_date_before_and_in_the_window(site: Site) -> None:
    take_plan(site, AHEAD)
    run_command(site, AHEAD)
    site.check_arrived()
    assert set(site.migration.rows().values()) == {FROM + NAME, FROM + "small.png"}
    for then in ([], ["migrate"]):
        body = bytes([site.migration.bodies["1"][0] ^ 1]) + BODY[1:]
        site.migration.legacy.put(FROM + NAME, body)
        site.migration.bodies["1"] = body
        site.log.seen.clear()
        take_plan(site, AHEAD, then=then)
        run_command(site, AHEAD)
        assert list(site.sent()) == [1]
        site.check_arrived(body)
    site.migration.audit()


def test_the_table_of_the_page_has_all_settings() -> None:
    named = {row[0].strip("`") for row in read_table(PAGE, SHARE)}
    assert named == set(PartsSettings.__struct_fields__) - set(QueueSettings.__struct_fields__)
