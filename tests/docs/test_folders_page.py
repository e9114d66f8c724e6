"""The example of rows that name folders does what the page shows."""

import re

from rowferry.plan_file import parse_plan
from support.docs.doc_pages import ROOT, is_in_section, read_blocks, read_plan_document, read_table
from support.entries.migration import Migration
from support.queue.queue_runs import migrate

FORMS = ROOT / "docs" / "forms.md"


def test_a_row_moves_with_the_objects_that_the_page_shows(migration: Migration) -> None:
    (block,) = [one for one in read_blocks("toml", pages=[FORMS]) if is_in_section(one, "Folders")]
    document = read_plan_document(block)
    parse_plan(document, str(block))
    (row,) = read_table(FORMS, "Folders")
    (before,), keys, (after,) = (re.findall(r"`([^`]+)`", cell) for cell in row)
    assert len(keys) > 1
    migration.execute("create table public.runs (run_uuid text primary key, artifact_uri text)")
    migration.execute("insert into public.runs values ('9f', %s)", (before,))
    migration.plan["entries"] = document["entries"]
    for key in keys:
        migration.legacy.put(key, key.encode())
    migrate(migration)
    assert [found["artifact_uri"] for found in migration.execute("select artifact_uri from public.runs")] == [after]
    assert {key: migration.production.read(key) for key in keys} == {key: key.encode() for key in keys}
