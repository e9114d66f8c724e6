"""`within = "text"`: the URLs inside longer texts are rewritten, and the rest stays byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.documents import put_texts
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import read_text
from rowferry.errors import PlanError
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.lock_holders import work_while_locked

OLD, NEW = "https://old/", "https://new/"
FIELDS = {"within": "text", "from": OLD, "to": NEW, "legacy_object": "", "production_object": "", "encoding": "percent"}
PIECES = st.one_of(
    st.text(alphabet="ab \n\t\"'<>()[]{}\\\\|^`.,;:!?%*+$é\u3042", max_size=8),
    st.sampled_from([OLD, NEW, f"{OLD}a.png", f"{OLD}x/y%20z.png?v=1&amp;w=2#q", f"{NEW}b.png", "https://elsewhere/c"]),
)


@pytest.fixture
def articles(migration: Migration) -> Migration:
    migration.plan["entries"][0].update(FIELDS)
    for key in ("a.png", "b.png"):
        migration.legacy.put(key, key.encode())
    return migration


@given(pieces=st.lists(PIECES, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_no_url_of_the_two_sides_stays_byte_for_byte(table: EntryTable, pieces: list[str]) -> None:
    table.plan["entries"][0].update(FIELDS)
    text = "".join(pieces)
    with connect("check", autocommit=True) as connection:
        entries = table.read_plan().entries[0]
        queries = EntryQueries.of(connection, entries)
        urls = read_text(entries, queries.found)
        query = sql.SQL("select {} as urls, {} as same from (select %(text)s::text as path) as e")
        composed = query.format(urls, put_texts(entries, queries.found, urls))
        (row,) = connection.execute(composed, queries.parameters(text=text)).fetchall()
    assert (row["same"] or "") == text
    assert all(url.startswith((OLD, NEW)) and url in text for url in json.loads(row["urls"]).values())


def test_a_row_moves_when_all_its_urls_have(articles: Migration) -> None:
    whole = f"<img src='{OLD}a.png'> and {OLD}b.png."
    lacks = f"{OLD}a.png {OLD}lost.png"
    articles.insert({"1": whole, "2": lacks, "3": "no URL"})
    assert articles.migrate() == {"migrated": 1, "missing": 1}
    assert articles.rows() == {"1": whole.replace(OLD, NEW), "2": lacks, "3": "no URL"}
    articles.check_balance()


def test_a_text_with_urls_of_both_sides_is_legacy_until_none_is_left(articles: Migration) -> None:
    articles.insert({"1": f"{NEW}b.png {OLD}a.png {NEW}b.png"})
    articles.production.put("b.png", b"b.png")
    articles.migrate()
    assert articles.rows() == {"1": f"{NEW}b.png {NEW}a.png {NEW}b.png"}


@pytest.mark.parametrize(
    ("change", "outcome", "text"),
    [
        ("'Look! ' || path", "migrated", f"Look! {NEW}a.png"),
        (f"'{OLD}b.png'", "changed", f"{OLD}b.png"),
        (f"path || ' {OLD}b.png'", "changed", f"{OLD}a.png {OLD}b.png"),
    ],
)
def test_what_an_application_writes_meanwhile_is_kept(
    articles: Migration, change: str, outcome: str, text: str
) -> None:
    """It holds the row when the worker comes to update it, and commits another text."""
    articles.insert({"1": f"{OLD}a.png"})
    articles.enqueue()
    with work_while_locked(articles, f"update public.avatars set path = {change} where id = 1") as application:
        application.commit()
    assert articles.counts() == {outcome: 1}
    assert articles.rows() == {"1": text}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"from": ""}, "needs a `from` and a `to` by which URLs are found"),
        ({"path": "$.a"}, "leave out `path`, `objects` and `optional`"),
        ({"objects": "'a'", "encoding": "none"}, "leave out `path`, `objects` and `optional`"),
    ],
)
def test_what_cannot_be_meant_is_refused(articles: Migration, fields: dict[str, Any], words: str) -> None:
    articles.plan["entries"][0].update(fields)
    with pytest.raises(PlanError) as caught:
        articles.read_plan()
    assert words in str(caught.value)
