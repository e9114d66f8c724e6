"""The page of `rowferry report --html` claims no more than is so: after a revert, of listings, over several queues."""

import json
import re
from pathlib import Path

import pytest

from support.entries.migration import Migration
from support.queue.lines import Lines
from support.queue.queue_runs import revert, verify
from support.screens.report_pages import PageReader, write_page


def tiles(page: PageReader) -> dict[str, tuple[str, str]]:
    """Return value and tone of each tile."""
    boxes = [one.attributes["class"] for one in page.find("div") if one.attributes.get("class", "").startswith("tile ")]
    names = [one.text for one in page.find("dt")][: len(boxes)]
    values = [one.text for one in page.find("dd", class_="value")]
    return {name: (value, box.removeprefix("tile ")) for name, value, box in zip(names, values, boxes, strict=True)}


def test_the_page_says_what_is_legacy_after_a_revert_until_it_was_migrated_again(
    migration: Migration, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    migration.fill(3).migrate()
    verify(migration)
    revert(migration)
    with subtests.test("reverted: nothing is green"):
        page = write_page(migration.dsn, tmp_path, expected=0)
        assert page.find("title")[0].text == "avatars: Reverted (rowferry report)"
        assert page.find("header")[0].attributes["class"] == "warn"
        assert "public.avatars.path: 3 rows reverted, none migrated since: legacy again." in page.text
        assert "good" not in {tone for _, tone in tiles(page).values()}
        assert "Rows were reverted since: they point at their legacy objects again." in page.text
    migration.enqueue()
    with subtests.test("begun again"):
        page = write_page(migration.dsn, tmp_path, expected=1)
        assert page.find("title")[0].text == "avatars: No workers (rowferry report)"
        assert "public.avatars.path: 3 rows reverted" in page.text
    migration.work()
    with subtests.test("made again"):
        page = write_page(migration.dsn, tmp_path, expected=0)
        assert page.find("title")[0].text == "avatars: Done (rowferry report)"
        assert "legacy again" not in page.text


def make_listing(database: str, status: str, error: str | None, *, has_ended: bool) -> None:
    """Store a migration whose only batch lists objects: it has no entries yet."""
    lines = Lines(database)
    lines.register("avatars")
    lines.session.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, error, started_at, "
        "finished_at, worker_id) select id, 'migrate', %s, 0, %s, %s, now(), case when %s then now() end, 'h:1:a' "
        "from rowferry.migration",
        (json.dumps({"entries": "*", "objects": "listing", "first": "", "last": None}), status, error, has_ended),
    )
    lines.close()


@pytest.mark.parametrize(
    ("error", "has_ended", "reason"),
    [
        ("AccessDenied", True, "failed: AccessDenied"),
        (None, True, "failed: no reason was recorded"),
        (None, False, "parked: set to ERROR by hand; `rowferry requeue` puts it back"),
    ],
)
def test_a_listing_in_error_is_one_batch_that_needs_an_operator(
    database: str, tmp_path: Path, error: str | None, has_ended: bool, reason: str
) -> None:
    make_listing(database, "ERROR", error, has_ended=has_ended)
    page = write_page(database, tmp_path, expected=1)
    assert "All other batches are done; 1 batch needs an operator." in page.text
    assert tiles(page)["Need an operator"] == ("1", "bad")
    assert tiles(page)["Done"] == ("–", "calm")
    assert [": ".join(row[:2]) for row in page.rows("Why batches are in ERROR")] == [reason]
    assert "0 entries in" not in page.text


def test_a_listing_that_waits_leaves_no_tile_green(database: str, tmp_path: Path) -> None:
    make_listing(database, "INIT", None, has_ended=False)
    page = write_page(database, tmp_path, expected=1)
    assert "1 of 1 batch waiting or running." in page.text
    assert {name: tone for name, (_, tone) in tiles(page).items() if tone == "good"} == {"Need an operator": "good"}


def test_nothing_is_added_up_over_queues(migration: Migration, tmp_path: Path) -> None:
    migration.fill(3).migrate()
    verify(migration)
    page = write_page(migration.dsn, tmp_path, expected=0)
    assert [row[:2] for row in page.rows("Attempts by verdict")] == [["migrate", "1"], ["verify", "1"]]
    migration.execute(
        "update rowferry.batch_queue set status = 'ERROR', finished_at = now(), error = 'e', "
        "migrated = 0, kept = 0, failed = 3"
    )
    page = write_page(migration.dsn, tmp_path, expected=1)
    assert tiles(page)["Need an operator"] == ("6", "bad")
    assert "in 1 batch of migrate, 1 batch of verify" in page.text
    assert "3 entries in 1 batch of migrate and 3 entries in 1 batch of verify need an operator." in page.text


def test_a_requeue_does_not_move_what_was_done_before(migration: Migration, tmp_path: Path) -> None:
    """All entries of a requeued batch were drawn at its last end."""
    migration.fill(3).add_row(4, "image/lost.png").migrate()
    for table in ("batch_queue", "batch_attempt"):
        migration.execute(
            f"update rowferry.{table} set started_at = started_at - interval '1 hour', "
            "finished_at = finished_at - interval '1 hour'"
        )
    migration.legacy.put("image/lost.png", b"found")
    migration.execute("select rowferry.requeue()")
    migration.work()
    page = write_page(migration.dsn, tmp_path, expected=0)
    said = [one.text.rpartition(" (")[2].rstrip(")") for one in page.find("title") if " entries/s (" in one.text]
    assert said == ["3 migrated, 1 missing", "1 migrated"], "each interval, without its time and its rate"
    first, last = (
        float(one.attributes["x"])
        for one in page.find("rect", class_="o-migrated")
        if "y" in one.attributes and one.attributes["y"] != "0"
    )
    assert last - first > 600, "half of the width"


def test_a_clock_that_was_set_back_gives_no_negative_duration(migration: Migration, tmp_path: Path) -> None:
    migration.fill(1).migrate()
    migration.execute("update rowferry.batch_queue set finished_at = started_at - interval '1 hour'")
    migration.execute("update rowferry.batch_attempt set finished_at = started_at - interval '1 hour'")
    migration.execute("update rowferry.batch_tally set finished_at = started_at - interval '1 hour'")
    page = write_page(migration.dsn, tmp_path, expected=0)
    assert not re.search(r" -\d", page.find("body")[0].text)
    assert tiles(page)["Took"] == ("–", "calm")
    assert "in 1 interval of" in page.text
    assert "entries/s on average" not in page.text
    migration.write_plan()
    assert not re.search(r" -\d", migration.run("report").stdout)
