"""docs/first-migration.md and the quick start run as they are written."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT, Block, is_in_section, read_blocks
from support.entries.migration import Migration
from support.processes.processes import run_to_end

pytestmark = pytest.mark.site

README = ROOT / "README.md"
FIRST_MIGRATION = ROOT / "docs" / "first-migration.md"


def test_the_first_migration_runs_as_it_is_written(migration: Migration) -> None:
    """All its blocks but the installation; what is the reader's own, the plan and the settings, is the test's here.

    The database knows nothing of rowferry when it begins.
    """
    migration.execute("drop schema rowferry cascade")
    migration.fill(8).add_row(9, "image/lost.png")
    blocks = [
        block
        for block in read_blocks("sh", pages=[FIRST_MIGRATION])
        if not is_in_section(block, "Try it with sample data")
    ]
    install, settings, example, at_once, failed, retry, verify, prepare, work, look, requeue = blocks
    assert "pip install ." in install.text
    assert set(re.findall(r"\b[A-Z][A-Z0-9_]+(?==)", settings.text)) <= set(migration.environment), "what it exports"

    run_block(migration, example)
    assert tomllib.loads(migration.plan_path.read_text())["entries"] == migration.plan["entries"]
    migration.write_plan()

    dry_run, migrate = at_once.text.splitlines()
    assert "Dry run: nothing was written" in run_shell(migration, dry_run)
    assert not migration.execute("select from pg_namespace where nspname = 'rowferry'")

    for block in (prepare, work):
        run_block(migration, block)
    assert "NoSuchKey" in run_block(migration, look)
    assert "NoSuchKey" in run_block(migration, failed)
    assert migration.counts() == {"migrated": 8, "missing": 1}

    migration.legacy.put("image/lost.png", b"found again")
    run_block(migration, requeue)
    run_block(migration, work)
    assert migration.counts() == {"migrated": 9}
    assert "Nothing to enqueue." in run_shell(migration, "rowferry enqueue")

    migration.fill(5, start=100)
    run_shell(migration, migrate)
    migration.add_row(200, "image/lost-too.png")
    run_shell(migration, "rowferry enqueue\nrowferry worker --until-empty")
    migration.legacy.put("image/lost-too.png", b"found again")
    run_block(migration, retry)
    migration.audit()

    run_block(migration, verify)
    assert "avatars" in (migration.folder / "report.html").read_text()


@pytest.mark.parametrize("page", [README, FIRST_MIGRATION], ids=["readme", "first-migration"])
@pytest.mark.by_day("readme")
def test_migrate_needs_no_other_command_before_it(page: Path, migration: Migration) -> None:
    migration.execute("drop schema rowferry cascade")
    migration.fill(5).write_plan()
    (at_once,) = [block for block in read_blocks("sh", pages=[page]) if "rowferry migrate --dry-run" in block.text]
    assert "5 entries in 1 batch would be enqueued" in run_block(migration, at_once)
    assert migration.counts() == {"migrated": 5}
    migration.audit()


def run_block(migration: Migration, block: Block) -> str:
    return run_shell(migration, block.text)


def run_shell(migration: Migration, script: str) -> str:
    """Run a script as a reader's shell would, with `y` to every question, and return what it prints."""
    ended = run_to_end(
        ["sh", "-ec", f'rowferry() {{ {shlex.quote(sys.executable)} -m rowferry_cli "$@"; }}\n{script}'],
        typed="y\n" * 5,
        env=migration.environment,
        cwd=migration.folder,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
