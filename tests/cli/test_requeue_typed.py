"""What `rowferry errors` and the dashboard say to type for a reason requeues its batches and no others."""

import shlex
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from drawing.queries import View
from support.checkout import ROOT
from support.entries.migration import Migration
from support.processes.cli import well
from support.queue.failing import fail
from support.screens.report_pages import write_page

NOW, HOUR = datetime.now(UTC), timedelta(hours=1)


REASONS = ["reason 1", "A%b", "A_b", r"back\slash", "it's", "two  spaces", "-x", "$(id) `id` !!", "long " * 30, "a\tb"]


@pytest.mark.by_day("errors")
@pytest.mark.parametrize("source", ["errors", "board"])
def test_what_is_typed_requeues_that_reason_alone(migration: Migration, source: str, subtests: pytest.Subtests) -> None:
    for reason in REASONS:
        with subtests.test(reason):
            check_what_is_typed(migration, source, reason)
        migration.execute("truncate rowferry.migration cascade")


def check_what_is_typed(migration: Migration, source: str, reason: str) -> None:
    """Let batches fail, one of them for a reason, type what a source says to type for it, and look what is due."""
    wanted = fail(migration, {"image/1": reason})
    for other in (f"x{reason}", f"{reason}9", f"{reason} more", reason.translate({ord(c): "z" for c in "%_\\"}) + "z"):
        fail(migration, {"image/2": other})
    fail(migration, {"image/3": reason}, migration="banners")
    migration.write_plan()
    typed = {"errors": read_errors, "board": read_board_commands}[source](migration)
    pattern = reason.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    (command,) = [one for one in typed if pattern in one or ("\t" in reason and "a_b" in one)]
    well(migration.run(*command[1:]))
    assert [batch["id"] for batch in migration.batches() if batch["status"] == "INIT"] == [wanted]


def read_errors(migration: Migration) -> list[list[str]]:
    lines = migration.run("errors").stdout.splitlines()
    return [shlex.split(line.partition("to retry")[2]) for line in lines if "to retry" in line]


def read_board_commands(migration: Migration, queue: str = "migrate") -> list[list[str]]:
    query = (ROOT / "dashboards/queries/errors.sql").read_text(encoding="utf-8")
    view = View(NOW - HOUR, NOW, {"migration": ["avatars"], "queue": [queue]}, 10)
    return [shlex.split(row["then type this"]) for row in migration.execute(view.expand_sql(query))]


@pytest.mark.parametrize("source", ["errors", "board"])
def test_a_queue_of_any_name_is_one_word_of_what_is_typed(migration: Migration, source: str) -> None:
    """Who may enqueue may choose the name of a queue, which ends up in a line that an operator copies."""
    batch = fail(migration, {"image/1": "A"})
    fail(migration, {"image/2": "B"})
    with pytest.raises(psycopg.errors.CheckViolation):
        migration.execute("update rowferry.batch_queue set queue_name = %s", ("it's; touch /tmp/x",))
    name = "its_touch_2"
    migration.execute("update rowferry.batch_queue set queue_name = %s where id = %s", (name, batch))
    migration.write_plan()
    read = {"errors": read_errors, "board": partial(read_board_commands, queue=name)}[source]
    typed = read(migration)
    assert any(one[one.index("--queue") + 1] == name for one in typed)


@pytest.mark.parametrize("source", ["errors", "board"])
def test_what_is_typed_for_parked_batches_requeues_them_alone(migration: Migration, source: str) -> None:
    fail(migration, {"image/1": "A"})
    parked = fail(migration, {})
    migration.execute("update rowferry.batch_queue set finished_at = null, error = null where id = %s", (parked,))
    migration.write_plan()
    typed = {"errors": read_errors, "board": read_board_commands}[source](migration)
    (command,) = [one for one in typed if "set to ERROR by hand" in " ".join(one)]
    assert migration.run(*command[1:]).returncode == 0
    assert [batch["id"] for batch in migration.batches() if batch["status"] == "INIT"] == [parked]


def test_a_reason_that_holds_a_secret_is_not_on_the_page(migration: Migration, tmp_path: Path) -> None:
    fail(migration, {"image/1": "password=hunter22"})
    page = write_page(migration.dsn, tmp_path, expected=1)
    assert "rowferry errors --migration avatars" in [one.text for one in page.find("code", class_="command")]
    assert "hunter22" not in page.text


@pytest.mark.parametrize("source", ["errors", "board"])
@pytest.mark.parametrize(
    ("reason", "repair"),
    [
        ("LegacyIsNewer", "rowferry verify --repair"),
        ("NoProductionObject", "rowferry verify --repair"),
        ("ProductionIsNewer", "rowferry verify --repair --overwrite"),
        ("WrittenTogether", "rowferry verify --repair --overwrite"),
    ],
)
def test_what_a_verification_found_is_ended_by_a_repair(
    migration: Migration, source: str, reason: str, repair: str
) -> None:
    fail(migration, {"image/1": reason})
    migration.execute("update rowferry.batch_queue set queue_name = 'verify'")
    migration.write_plan()
    if source == "errors":
        lines = migration.run("errors").stdout.splitlines()
        typed = [line.partition("to repair")[2].split() for line in lines if "to repair" in line]
    else:
        typed = read_board_commands(migration, "verify")
    assert repair.split() in typed
