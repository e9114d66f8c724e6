"""Each form of entries moves with its objects, is verified, and goes back: the plan's language, end to end."""

import json
from typing import Any

import pytest

from support.entries.forms import FORMS, Form
from support.entries.migration import Migration
from support.entries.prepared_forms import fill_form
from support.queue.queue_runs import revert, verify


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, migration: Migration) -> Form:
    """Make the table, the rows and the objects of a form."""
    form = FORMS[request.param]
    fill_form(migration, form)
    migration.plan_entries("public.things", **form.entries)
    return form


def read_rows(migration: Migration) -> list[tuple[Any, ...]]:
    """Return the rows with their JSON in texts parsed, whose blanks and order PostgreSQL may change."""
    rows = migration.execute("select * from public.things order by 1, 2")
    return normalise([tuple(row.values()) for row in rows])


def normalise(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        tuple(json.loads(value) if isinstance(value, str) and value.startswith("{") else value for value in row)
        for row in rows
    ]


def test_a_form_moves_is_verified_and_goes_back(migration: Migration, form: Form) -> None:
    migration.migrate()
    assert read_rows(migration) == normalise(form.after), migration.failures()
    for legacy, production in form.objects.items():
        assert migration.production.read(production) == f"body of {legacy}".encode()
    assert migration.statuses() == {"DONE"}
    migration.check_balance()

    verify(migration)
    assert migration.statuses() == {"DONE"}, migration.failures()

    revert(migration)
    assert migration.statuses() == {"DONE"}, migration.failures()
    assert read_rows(migration) == normalise(form.before)
    migration.check_balance()
