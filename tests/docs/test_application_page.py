"""What docs/application.md and the runbook tell people to do works."""

from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT, Block, read_blocks, read_section
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import run_rowferry_in, well

PAGE = ROOT / "docs" / "application.md"


def find_blocks(heading: str, language: str) -> list[Block]:
    """Return the blocks in a language below a heading."""
    before, section, _ = PAGE.read_text(encoding="utf-8").partition(read_section(PAGE, heading))
    first = before.count("\n")
    lines = range(first, first + section.count("\n"))
    return [block for block in read_blocks(language, pages=[PAGE]) if block.line in lines]


def run_block(migration: Migration, block: Block) -> str:
    """Run the commands of a block, with yes to every question, and return what they print."""
    shown = ""
    for _, command, *options in block.commands:
        more = () if command in {"check", "resume"} else ("--yes", "--processes", "1")
        shown += well(migration.run(command, *options, *more, **migration.environment)).stdout
    return shown


def find_side(migration: Migration, key: str) -> str:
    """Return the side whose bucket the page's function names, the way an application would."""
    names: dict[str, object] = {}
    (block,) = find_blocks("Cut over: the keys change", "python")
    exec(block.text, names)
    find_bucket = names["find_bucket"]
    assert callable(find_bucket)
    return {"sketch-legacy-s3": "legacy", "sketch-production-s3": "production"}[str(find_bucket(key))]


def find_absent(migration: Migration) -> list[str]:
    """Return the keys of rows that an application cannot read."""
    keys = [row["path"] for row in migration.execute("select path from public.avatars")]
    sides = {"legacy": migration.legacy, "production": migration.production}
    return [key for key in keys if key not in sides[find_side(migration, key)].listing()]


def test_an_application_that_chooses_by_prefix_reads_every_object_in_the_middle(migration: Migration) -> None:
    migration.fill(6)
    assert not find_absent(migration)
    migration.enqueue(batch_size=2)
    with migration.at_work() as take_turn:
        take_turn()
    assert migration.execute("select count(distinct split_part(path, '/', 1)) as forms from public.avatars") == [
        {"forms": 2}
    ]
    assert not find_absent(migration)
    migration.work()
    assert not find_absent(migration)


@pytest.mark.site
def test_going_back_in_the_middle_works_as_told(migration: Migration) -> None:
    migration.write_plan().given(4, batch_size=2).work()
    migration.fill(4, start=5).enqueue(batch_size=2)
    assert migration.run("revert", "--yes", **migration.environment).returncode == 2

    assert "running batches, which will finish: 0" in migration.run("pause", **migration.environment).stdout
    (delete,) = find_blocks("Roll back", "sql")
    migration.execute(delete.text)
    (resume_and_revert,) = find_blocks("Roll back", "sh")
    run_block(migration, resume_and_revert)
    rows = migration.execute("select path from public.avatars")
    assert len(rows) == 8
    assert all(row["path"].startswith("image/") for row in rows)
    assert not find_absent(migration)


RUNBOOK = ROOT / "docs" / "runbook.md"
ELSEWHERE = ("worker", "init")
"""Commands that run for ever, or need a role: tests of their own have them."""


def list_commands() -> list[tuple[str, ...]]:
    """Return what the runbook has one type, in its order."""
    typed = [line.split() for block in read_blocks("sh", pages=[RUNBOOK]) for line in block.text.splitlines()]
    return [tuple(words[1:]) for words in typed if words[:1] == ["rowferry"] and words[1] not in ELSEWHERE]


@pytest.fixture
def failing(table: EntryTable) -> EntryTable:
    """Two batches, of which one is in ERROR."""
    table.add_legacy(range(1, 21)).enqueue(10)
    table.execute(
        "update rowferry.batch_queue set status = 'ERROR', failed = 10, error = 'AccessDenied', finished_at = now() "
        "where id = (select min(id) from rowferry.batch_queue)"
    )
    return table


@pytest.mark.usefixtures("failing")
def test_each_command_of_the_runbook_needs_the_database_alone(tmp_path: Path) -> None:
    commands = list_commands()
    assert ("watch", "--once") in commands
    assert len(commands) > 6
    run = run_rowferry_in(tmp_path)
    for command in commands:
        words = [word.strip("'") for word in command]
        done = run(*words)
        assert done.returncode == 0, f"rowferry {' '.join(words)}: {done.stdout}{done.stderr}"
        assert not list(tmp_path.iterdir())
