"""`within = "text"`: the URLs inside longer texts are rewritten, and the rest stays byte for byte."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.documents import put_texts
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import list_objects_of_text, read_text
from rowferry.keys import map_text
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.lock_holders import work_while_locked
from support.queue.queue_runs import verify

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
    """A text with URLs of both sides is legacy until none of it is left."""
    whole, both = f"<img src='{OLD}a.png'> and {OLD}b.png.", f"{NEW}b.png {OLD}a.png {NEW}b.png"
    lacks = f"{OLD}a.png {OLD}lost.png"
    articles.insert({"1": whole, "2": lacks, "3": "no URL", "4": both})
    assert articles.migrate()["missing"] == 1
    assert articles.rows() == {"1": whole.replace(OLD, NEW), "2": lacks, "3": "no URL", "4": both.replace(OLD, NEW)}
    articles.check_balance()


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
    articles.insert({"1": f"{OLD}a.png"}).enqueue()
    with work_while_locked(articles, f"update public.avatars set path = {change} where id = 1") as application:
        application.commit()
    assert articles.counts() == {outcome: 1}
    assert articles.rows() == {"1": text}


READ: dict[str, tuple[str, ...]] = {
    'see "@photo (1).jpg" and': ("photo (1).jpg",),
    "<img src='@photo (1).jpg' alt=''>": ("photo (1).jpg",),
    "<a href='@a.png'>it's</a>": ("a.png",),
    '<a href="@report(final)">': ("report(final)",),
    "<img src=&quot;@a.png&quot;>": ("a.png",),
    "<img src=&#39;@a.png&#39;>": ("a.png",),
    "&lt;@a.png&gt;": ("a.png",),
    "@Bob's.jpg": ("Bob's.jpg",),
    "@photo(1).jpg": ("photo(1).jpg",),
    "(see @photo(1).jpg)": ("photo(1).jpg",),
    "(see @report(final)).": ("report(final)",),
    "(@a(1).png), (@report(final))": ("a(1).png", "report(final)"),
    '![x](@a.png)![y](@b(1).png) ![z](@c.png "c")': ("a.png", "b(1).png", "c.png"),
    "url(@a.png);color:red": ("a.png",),
    "url('@a.png');color:red": ("a.png",),
    "<@a.png>": ("a.png",),
    "at @a.png.": ("a.png",),
    "at @a.png, @b.png; @c.png!?": ("a.png", "b.png", "c.png"),
    "@a.png,@b.png;@c.png": ("a.png", "b.png", "c.png"),
    "[img]@a.png[/img] [url=@b.png]b[/url]": ("a.png", "b.png"),
    "|@a.png|@b.png|": ("a.png", "b.png"),
    "`@a.png`": ("a.png",),
    "**@a.png**": ("a.png",),
    '{"u":"@a.png","v":["@b.png"]}': ("a.png", "b.png"),
    '{\\"u\\":\\"@a.png\\"}': ("a.png",),
    "one\\n@a.png\\nmore": ("a.png",),
    "@my\\_pic\\(1\\).png": ("my_pic(1).png",),
    "@a&amp;b.png?v=1&amp;w=2": ("a&b.png",),
    "@x%20y.png#top.": ("x y.png",),
    "@a[1].png": ("a[1].png",),
    "@a{b}.png": ("a{b}.png",),
    "@a\u00e9\u3042.png": ("a\u00e9\u3042.png",),
    "@a\\u00e9.png": ("a\\u00e9.png",),
    "@ @. (@)": (),
    '<img src="@c d.png" srcset="@a.png 1x, @b.png 2x">': ("c d.png", "a.png", "b.png"),
    '<img src="@c d.png" srcset="@a.png 2x">': ("c d.png", "a.png"),
    "<source data-srcset = '@a.png 1.5x'> <img SRCSET='@b.png 480w'>": ("a.png", "b.png"),
    '{\\"html\\":\\"<img srcset=\\\\\\"@a.png 2x\\\\\\">\\"}': ("a.png",),
    "@a)b.png": ("a)b.png",),
    "@a(b.png": ("a(b.png",),
}
"""Texts, @ for the prefix, and the keys that their URLs write; what is no sane text is rather read too long."""


def test_urls_are_read_alike_by_postgresql_and_here(table: EntryTable, subtests: pytest.Subtests) -> None:
    table.plan["entries"][0].update(FIELDS)
    entries = table.read_plan().entries[0]
    with connect("check", autocommit=True) as connection:
        queries = EntryQueries.of(connection, entries)
        urls = read_text(entries, queries.found)
        query = sql.SQL(
            "select e.text, array(select rest from ({}) as o) as rests "
            "from (select {} as text from (select %(text)s::text as path) as e) as e"
        ).format(list_objects_of_text(entries, "legacy"), urls)
        for text, keys in READ.items():
            with subtests.test(text):
                given = queries.parameters(text=text.replace("@", OLD), form="legacy")
                (row,) = connection.execute(query, given).fetchall()
                found = sorted(json.loads(row["text"]).items(), key=lambda pair: int(pair[0].strip("{}")))
                assert tuple(map_text(url, entries).keys.legacy for _, url in found) == keys
                assert sorted(row["rests"]) == sorted(keys)


def test_what_a_rewritten_text_names_was_copied(articles: Migration) -> None:
    """Also where a shorter reading, or one with the sign at its end, names an object as well."""
    for key in ("u/report", "u/report(final)", "u/report(final).", "a.png", "a.png."):
        articles.legacy.put(key, key.encode())
    articles.insert({"1": f'<a href="{OLD}u/report(final)">', "2": f"See {OLD}u/report(final).", "3": f"{OLD}a.png."})
    articles.enqueue()
    assert articles.work() == {"migrated": 3}
    assert set(articles.production.listing()) == {"u/report(final)", "u/report(final).", "a.png", "a.png."}
    assert all(NEW in (text or "") for text in articles.rows().values())


def test_a_reading_that_is_too_long_leaves_the_row(articles: Migration) -> None:
    articles.legacy.put("u/report", b"1")
    texts = {"1": f"{OLD}u/report[2", "2": f"{OLD}u/report(final)", "3": f"{OLD}u/report\\u00e9"}
    articles.insert(texts).enqueue()
    assert articles.work() == {"missing": 3}
    assert articles.rows() == texts
    assert articles.failure_of(1)[2].startswith("'u/report[2'")


def test_verify_finds_what_was_rewritten_by_a_shorter_reading(articles: Migration) -> None:
    """As rowferry did before it read brackets: the text names another object than was copied."""
    for key in ("u/report", "u/report(final)"):
        articles.legacy.put(key, key.encode())
    articles.production.put("u/report", b"u/report")
    articles.insert({"1": f"{NEW}u/report(final)"})
    verify(articles)
    assert articles.counts() == {"missing": 1}
