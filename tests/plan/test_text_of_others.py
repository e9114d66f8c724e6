"""A key or a server's message, which strangers write, commands no terminal; files for programs stay exact."""

import json
import logging
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.formatting import format_json, hide_unfit, show_text
from rowferry.logs import TextFormatter
from support.entries.entry_table import FROM
from support.entries.migration import Migration

UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
TITLE = "\x1b]0;owned\x07"
KEY = f"{FROM}u1/{TITLE}\u202e[/bold]\x9b31m.png"
SHOWN = r"u1/\x1b]0;owned\x07\u202e[/bold]\x9b31m.png"


@pytest.fixture
def failed(migration: Migration) -> Migration:
    """A migration whose only entry has no object, and a key with commands to a terminal."""
    migration.plan["migration"]["max_attempts"] = 1
    migration.write_plan().add_row(1, KEY).migrate()
    migration.execute("update rowferry.entry_failure set reason = reason || %s, error = error || %s", (TITLE, TITLE))
    migration.execute("update rowferry.batch_queue set status = 'ERROR' where status = 'ERROR'")  # sums reasons up
    return migration


def check_fit(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that what a command printed has lines and nothing else that a terminal obeys."""
    printed = done.stdout + done.stderr
    assert done.returncode in {0, 1}, printed
    assert UNFIT.search(printed) is None


def test_commands_that_tell_of_entries_print_no_control_character_and_the_key_can_be_read(failed: Migration) -> None:
    for command in ("errors", "errors --entries", "watch --once", "errors --entries --json", "report", "status"):
        done = failed.run(*command.split(), *(["--no-objects"] if command == "status" else []), COLUMNS="200")
        check_fit(done)
        assert SHOWN in done.stdout or command not in {"errors", "errors --entries", "watch --once"}


def test_files_and_json_hold_the_key_as_it_is_and_the_command_that_requeues_the_reason_finds_it(
    failed: Migration,
) -> None:
    assert json.loads(failed.run("errors", "--entries", "--json").stdout)[0]["key"] == KEY
    failed.run("report", "--manifest", "manifest.jsonl")
    text = (failed.folder / "manifest.jsonl").read_text(encoding="utf-8")
    assert KEY in {json.loads(line).get("key") for line in text.splitlines()}
    assert UNFIT.search(text) is None
    (line,) = [line for line in failed.run("errors").stdout.splitlines() if "to retry" in line]
    show_words = line.replace("    to retry     rowferry", r"printf '%s\0'")
    words = subprocess.run(["sh", "-c", show_words], capture_output=True, text=True, check=True).stdout.split("\0")
    assert "1 batch" in failed.run(*words[:-1]).stdout


def test_migrate_prints_no_control_character_and_its_log_holds_none(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.write_plan().add(1, KEY.removeprefix(FROM))
    done = migration.run("migrate", "--yes", "--verbose", "--no-objects", "--log-file", "it.log")
    check_fit(done)
    assert SHOWN in done.stdout
    assert UNFIT.search((migration.folder / "it.log").read_text(encoding="utf-8")) is None


def test_a_log_in_words_keeps_each_entry_in_one_line() -> None:
    fields = {"old_key": "a\nb", "new_key": "a \x1b b"}
    record = logging.makeLogRecord({"levelno": logging.INFO, "msg": "no%sthing", "args": ("\n\x1b[2J",), **fields})
    assert TextFormatter().format(record).endswith(r"no\n\x1b[2Jthing  old_key=a\nb new_key='a \x1b b'")


@given(st.text(st.characters()))
def test_json_escapes_what_terminals_act_on_and_says_the_same(text: str) -> None:
    """Surrogates too, which no stream writes; letters of all languages stay as they are."""
    written = format_json({text: [text]}, indent=2)
    assert json.loads(written) == {text: [text]}
    assert show_text(written.replace("\n", "")) == written.replace("\n", "")
    assert "日本" in format_json("日本")


@given(st.text())
def test_whatever_is_shown_is_fit_and_short_text_of_letters_stays(text: str) -> None:
    assert show_text(show_text(text)) == show_text(text)
    assert "\x1b" not in show_text(text)
    assert len(hide_unfit(text)) == len(text)
    assert show_text("Straße/ü 日本.png") == "Straße/ü 日本.png"
