"""A list of texts reaches PostgreSQL as psycopg itself would write it, whatever is in it."""

from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import DataError
from psycopg.adapt import PyFormat, Transformer

from rowferry.batch import Outcome
from rowferry.db.arrays import TextListDumper
from support.entries.entry_table import EntryTable

pytestmark = [pytest.mark.versions, pytest.mark.pythons]

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
AWKWARD = st.text('"\\{},; \t\nNULnulé\u2003', max_size=8)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.one_of(TEXTS, AWKWARD, st.none()), max_size=8))
@example(['","'])
@example(["NULL", "", " ", None])
@example([])
def test_any_texts_arrive_as_psycopg_writes_them(table: EntryTable, texts: list[str | None]) -> None:
    with table.session("arrays") as connection:
        plain = table.execute("select %s::text[] as theirs", (texts,))
        ours = connection.execute("select %s::text[] as ours, %s::text[] is not distinct from %s as same", (texts,) * 3)
        assert plain == [{"theirs": texts}]
        assert ours.fetchall() == [{"ours": texts, "same": True}]


@pytest.mark.parametrize("value", [[1, 2], [["a", '"'], ["b", ""]], [Outcome.KEPT], [True, None]])
def test_other_lists_are_left_to_psycopg(table: EntryTable, value: list[Any]) -> None:
    with table.session("arrays") as ours, psycopg.connect(table.dsn) as theirs:
        dumpers = [Transformer(each).get_dumper(value, PyFormat.AUTO) for each in (ours, theirs)]
        assert dumpers[0].dump(value) == dumpers[1].dump(value)
        assert isinstance(dumpers[0], TextListDumper)


@pytest.mark.parametrize(("text", "error"), [("a\0b", DataError), ("\ud800", UnicodeEncodeError)])
def test_what_no_database_can_hold_is_refused(table: EntryTable, text: str, error: type[Exception]) -> None:
    with table.session("arrays") as connection, pytest.raises(error):
        connection.execute("select %s::text[]", (["fits", text],))
