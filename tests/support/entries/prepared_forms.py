"""A migration in one of the forms, ready to be worked on."""

from support.entries.forms import FORMS, Form, adapt
from support.entries.migration import Migration

MORE_COLUMNS = {
    "computed": (
        "alter table public.things add column folder text default 'o/', add column size text default 'tiny/', "
        "add column hidden boolean default false, add column title text"
    )
}


CHANGES = {
    "computed": {
        "objects": "array[folder || id || '/' || file_name, 's/' || id || '/' || file_name]",
        "optional": "size || id",
        "where": "not hidden",
    }
}


def fill_form(migration: Migration, form: Form) -> None:
    """Make the table, the rows and the objects of a form."""
    migration.execute(f"create table public.things ({form.columns})")
    for row in form.before:
        marks = ", ".join("%s" for _ in row)
        migration.execute(f"insert into public.things values ({marks})", adapt(row))
    for key in form.objects:
        migration.legacy.put(key, f"body of {key}".encode())


def prepare_plainly(migration: Migration, form: Form) -> None:
    """Make all of a form, without the columns and changes that this file gives some forms beside."""
    fill_form(migration, form)
    migration.plan_entries("public.things", **form.entries)


def prepare(migration: Migration, name: str) -> None:
    """Make all of a form, with columns that its plan reads as well; the first row is that of the test."""
    form = FORMS[name]
    fill_form(migration, form)
    if name in MORE_COLUMNS:
        migration.execute(MORE_COLUMNS[name])
    migration.plan_entries("public.things", **form.entries | CHANGES.get(name, {}))
