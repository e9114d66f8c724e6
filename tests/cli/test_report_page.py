"""`rowferry report --html`: one page that says what became of a migration, whatever its texts are, and bounded."""

import re
from pathlib import Path

import psycopg

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_roles
from support.queue.lines import Lines
from support.queue.long_migration import fill_queue
from support.screens.hostile_texts import HOSTILE, SECRET
from support.screens.report_pages import write_page


def test_a_page_says_what_the_report_says_and_needs_nothing_else(eventful: Migration, tmp_path: Path) -> None:
    page = write_page(eventful.dsn, tmp_path, expected=1)
    assert page.find("title")[0].text == "avatars: No workers (rowferry report)"
    assert (
        "2 of 8 batches waiting or running; 4 entries in 2 batches of migrate and 1 entry in 1 batch of verify need an "
        "operator."
    ) in page.text
    assert [row[:2] for row in page.rows("Outcomes of migrate")] == [
        ["migrated", "7"],
        ["kept", "0"],
        ["missing", "1"],
        ["conflict", "1"],
        ["failed", "2"],
        ["waiting", "2"],
        ["all entries", "13"],
    ]
    assert page.rows("Outcomes of verify")[1] == ["kept", "6", "85.7 %", "equal, or readable without a legacy object"]
    reasons = {(row[0], row[4]): row for row in page.rows("Why batches are in ERROR")}
    assert reasons["missing", "migrate"][1:4] == ["NoSuchKey", "1", "1"]
    assert reasons["missing", "migrate"][6] == "image/lost.png"
    assert reasons["conflict", "migrate"][6] == "image/other.png"
    assert "rowferry errors --migration avatars says what solves each" in page.text
    assert "1 differ. 7 entries compared, by size, ETag and checksum" in page.text
    assert page.rows("Attempts by verdict") == [
        ["migrate", "3", "2", "0", "1", "0", "0", "0", "0"],
        ["verify", "2", "1", "0", "1", "0", "0", "0", "0"],
    ]
    assert f'"bucket": "{eventful.legacy.bucket}"' in page.text
    assert f"s3://{eventful.production.bucket} at " in page.text
    names = {element.name for element in page.elements}
    assert not names & {"script", "img", "iframe", "object", "form", "base", "video"}
    links = [element.attributes["href"] for element in page.elements if "href" in element.attributes]
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert {link for link in links if link != "data:,"} <= {f"#{one}" for one in ids}
    assert not [element for element in page.elements if {"src", "style", "onload"} & set(element.attributes)]
    (style,) = page.find("style")
    assert "url(" not in style.text
    assert "@import" not in style.text
    (policy,) = [one for one in page.find("meta") if "http-equiv" in one.attributes]
    assert policy.attributes["content"].startswith("default-src 'none';")


def test_the_page_of_an_empty_migration_says_so(database: str, tmp_path: Path) -> None:
    lines = Lines(database)
    lines.register("empty")
    lines.close()
    page = write_page(database, tmp_path, expected=0)
    for words in ("Nothing has been enqueued.", "There is no batch.", "There was no attempt.", "No batch is in ERROR"):
        assert words in page.text
    assert not page.find("svg")


def test_a_page_is_of_one_migration_and_each_queue_speaks_its_own_words(database: str, tmp_path: Path) -> None:
    fill_queue(database, 400)
    lines = Lines(database)
    lines.register("others")
    lines.add(("others", "revert"), 5)
    lines.close()
    page = write_page(database, tmp_path, "--migration", "avatars", expected=1)
    assert "revert" not in page.text
    assert [one.text.split()[0] for one in page.find("h3") if "queue-" in one.attributes.get("id", "")] == [
        "migrate",
        "verify",
    ]
    meanings = [{row[0]: row[3] for row in page.rows(f"Outcomes of {name}")} for name in ("migrate", "verify")]
    assert meanings[0]["kept"] == "an identical object was there, or was to be kept; row updated"
    assert meanings[1]["kept"] == "equal, or readable without a legacy object"
    assert [row[0] for row in page.rows("Tables of migrate")] == ["public.avatars.path", "public.covers.path"]
    assert [row[1] for row in page.rows("Pauses")].count("paused") == 1
    others = write_page(database, tmp_path, "--migration", "others", expected=1)
    assert "avatars" not in others.text
    assert "5 of 5 batches waiting or running" in others.text


def test_attempts_of_dead_workers_are_crashes(database: str, tmp_path: Path) -> None:
    fill_queue(database, 1000)
    page = write_page(database, tmp_path, expected=1)
    with psycopg.connect(database) as connection:
        found = connection.execute("select count(*) from rowferry.batch_attempt where verdict is null").fetchone()
    assert found
    crashed = [int(row[7]) for row in page.rows("Attempts by verdict")]
    assert sum(crashed) == found[0] > 0


def test_hostile_texts_stay_texts_and_secrets_are_hidden_and_an_operator_may_write_the_page(
    hostile: EntryTable, tmp_path: Path
) -> None:
    page = write_page(hostile.dsn, tmp_path, expected=1, ROWFERRY_LEGACY_SECRET_ACCESS_KEY="long" * 3)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not {"script", "img", "b"} & {element.name for element in page.elements}
    assert HOSTILE in page.text
    assert SECRET not in text
    assert "\u202e" not in text
    assert r"\u202egnp.exe שלום" in page.text
    assert not re.search(r"(?:long){3}", text)
    assert "x" * 401 not in text
    with new_roles(hostile.dsn) as roles:
        grant(hostile, roles)
        write_page(log_in(hostile, roles["operator"]), tmp_path, "--migration", "avatars", expected=1)


def test_a_page_is_small_however_many_reasons_hosts_and_batches_there_are(table: EntryTable, tmp_path: Path) -> None:
    table.add_legacy(range(4000)).enqueue(2)
    table.execute(
        "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt) "
        "select id, n, repeat('k', 900), 'failed', 'reason ' || id %% 300, repeat('e', 3000), 1 "
        "from rowferry.batch_queue, generate_series(1, 2) as n where 0 = %s",
        (0,),
    )
    table.execute(
        "update rowferry.batch_queue set status = 'ERROR', failed = 2, worker_id = 'host-' || id || ':1:a', "
        "started_at = now(), finished_at = now() + id * interval '7 seconds'"
    )
    table.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, finished_at, verdict, error) "
        "select id, 0, 1, 'host-' || id || ':1:a', now(), 'RETRY', 'error ' || id from rowferry.batch_queue"
    )
    page = write_page(table.dsn, tmp_path, expected=1)
    assert (tmp_path / "page.html").stat().st_size < 600_000
    assert "260 more reasons: `rowferry errors --limit 300 --migration avatars` lists them." in page.text
    assert len(page.rows("Why batches are in ERROR")) == 40
