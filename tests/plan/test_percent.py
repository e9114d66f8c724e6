"""PostgreSQL decodes percent-encoded texts as Python does: what a check finds is what a worker will meet."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rowferry.db.entries import EntryQueries
from rowferry.db.forms import list_objects
from rowferry.errors import PlanError
from rowferry.plan import Entries
from support.entries.checks import check_rows_of, entries_of
from support.entries.entry_table import EntryTable
from support.entries.key_forms import PLAIN

pytestmark = [pytest.mark.versions, pytest.mark.pythons]

URL = "https://old/"
ENTRIES = Entries("t", "id", "k", URL, "https://new/", legacy_object="", encoding="percent")
BYTES = st.integers(0, 255).flatmap(lambda byte: st.sampled_from([f"%{byte:02x}", f"%{byte:02X}"]))
UTF_8 = st.characters(exclude_categories=["Cs"]).map(lambda one: "".join(f"%{byte:02X}" for byte in one.encode()))
LITERAL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
ODD = st.sampled_from(["%", "%%", "%4", "%zz", "?", "#", "\n", "%C3é%A9", "%2525", "%ED%A0%80", "%F4%90%80%80"])
TEXTS = st.lists(BYTES | UTF_8 | LITERAL | ODD, max_size=8).map("".join)


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(TEXTS)
@example("a%20b%C3%A9.png?v=1#x")
@example("100%.png#?")
@example("%00")
@example("%C0%80")
@example("%E2%82")
@example("")
def test_sql_and_python_decode_any_text_alike(table: EntryTable, text: str) -> None:
    query = sql.SQL("select o.rest from (select %(text)s::text as text) as e cross join lateral ({}) as o")
    parameters = EntryQueries(ENTRIES, PLAIN).parameters(text=URL + text)
    (row,) = table.execute(query.format(list_objects(ENTRIES, "legacy")), parameters)
    try:
        expected = ENTRIES.decode(text)
    except ValueError:
        expected = None
    assert row["rest"] == expected


def test_a_badly_encoded_text_is_counted_with_an_example(table: EntryTable) -> None:
    entries_of(table).update({"from": URL, "to": "https://new/", "legacy_object": "", "encoding": "percent"})
    table.insert({"1": f"{URL}a%20b", "2": f"{URL}%E9.png", "3": f"{URL}%00"})
    findings = check_rows_of(table)
    assert "public.avatars.path: 1 legacy entry with usable production keys" in [found.what for found in findings]
    (problem,) = [found for found in findings if found.level == "problem"]
    assert problem.what == ("public.avatars.path: 2 legacy entries cannot be decoded, for example 'https://old/%00'")
    assert "encoding" in problem.remedy


def test_a_prefix_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(PlanError, match="badly percent-encoded: correct it, or give `legacy_object`"):
        Entries("t", "id", "k", "https://old/%E9", "https://new/", encoding="percent")
