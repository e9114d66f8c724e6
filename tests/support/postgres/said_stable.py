"""Functions that are said to be stable and are not: a plan may call no others, and tests need what takes time."""

import pytest

from rowferry.db.called_functions import ALLOWED_SQL_FUNCTIONS
from support.entries.entry_table import EntryTable

FUNCTIONS = (
    "create function public.nap(float8) returns boolean language sql stable as 'select pg_sleep($1) is not null'",
    "create function public.asked() returns text language sql stable as 'select current_query()'",
    "create function public.any_text() returns text language sql stable as 'select random()::text'",
)


def allow_functions(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `public.nap(seconds)`, `public.asked()` and `public.any_text()`, and let the environment allow them."""
    for each in FUNCTIONS:
        table.execute(each)
    monkeypatch.setenv(ALLOWED_SQL_FUNCTIONS, "public.nap, public.asked, public.any_text")
