"""The runbook's commands, as typed at 3 a.m.: with DATABASE_URL and no plan at hand."""

from pathlib import Path

import pytest

from support.docs.doc_pages import ROOT, read_blocks
from support.entries.entry_table import EntryTable
from support.processes.cli import run_rowferry_in

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
