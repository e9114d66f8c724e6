"""The pages of `rowferry report --html` in a real browser: three widths, light and dark, printed.

`make test-pages` installs what it needs from tests/support/browser/package-lock.json. Without that, or without
Chromium and Node.js, these tests are skipped.
"""

from pathlib import Path

import pytest

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.queue.lines import Lines
from support.queue.long_migration import fill_queue
from support.screens.browser_looks import SIZES, check_look, look
from support.screens.report_pages import write_page

pytestmark = pytest.mark.browser


NINE_DIGITS = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, error, started_at, finished_at, migrated, failed, bytes
)
select
    m.id, %(queue)s, jsonb_build_object('entries', 'public.' || m.name || '.path'), %(entries)s, %(status)s,
    'AccessDenied', now() - interval '9 days', now(), case %(status)s when 'DONE' then %(entries)s else 0 end,
    case %(status)s when 'ERROR' then %(entries)s else 0 end, 900000000000000
from rowferry.migration as m
"""


def check(folder: Path) -> None:
    """Hold a page against what every reader needs, at each width and in each colour scheme."""
    found = look(folder, folder / "page.html")
    assert [(one["width"], one["scheme"]) for one in found["looks"]] == SIZES
    for one in found["looks"]:
        check_look(one)
        assert [url for url in one["requests"] if not url.startswith("data:")] == [one["url"]]
        assert one["scripts"] == 0
        assert one["cut"] == [], (one["width"], "what does not fit its cell or tile")
    backgrounds = {one["scheme"]: one["background"] for one in found["looks"]}
    assert backgrounds["light"] != backgrounds["dark"]
    (printed,) = found["prints"]
    assert printed["background"] == "rgb(255, 255, 255)"
    assert Path(printed["path"]).read_bytes().startswith(b"%PDF-")


def test_the_page_of_a_migration_with_failures(eventful: Migration, tmp_path: Path) -> None:
    write_page(eventful.dsn, tmp_path, expected=1)
    check(tmp_path)


def test_the_page_of_a_long_migration_of_two_queues(database: str, tmp_path: Path) -> None:
    fill_queue(database, 1000)
    write_page(database, tmp_path, expected=1)
    check(tmp_path)


def test_the_page_of_hostile_texts(hostile: EntryTable, tmp_path: Path) -> None:
    write_page(hostile.dsn, tmp_path, expected=1)
    check(tmp_path)


def test_the_page_of_nine_digits_and_of_long_names(database: str, tmp_path: Path) -> None:
    """400 M entries, of which 123 M need an operator; names of sixty letters, each without a place to break."""
    lines = Lines(database)
    migration = "customer_documents_2019_to_2026_eu_central_1_to_ap_southeast"
    queue = "check_each_against_the_register_of_2019_and_of_its_years"
    lines.register(migration, {"migrate": {"next": [queue]}})
    for name, entries, status in (
        ("migrate", 276_543_211, "DONE"),
        ("migrate", 123_456_789, "ERROR"),
        (queue, 276_543_211, "DONE"),
    ):
        lines.session.execute(NINE_DIGITS, {"queue": name, "entries": entries, "status": status})
    lines.close()
    page = write_page(database, tmp_path, expected=1)
    assert {"400,000,000", "123,456,789"} <= {one.text for one in page.find("dd", class_="value")}
    check(tmp_path)
