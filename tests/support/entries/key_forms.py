"""The form of a text of a plain column, and what it becomes, in the words of the tests."""

from typing import Literal

from rowferry.db.description import Description
from rowferry.keys import has_form, map_text
from rowferry.plan import Entries


def form_of_key(key: str | None, entries: Entries) -> Literal["legacy", "production", "unexpected"]:
    """Return the one form that a key has."""
    if has_form(key, entries, "legacy"):
        return "legacy"
    return "production" if has_form(key, entries, "production") else "unexpected"


def production_key(key: str, entries: Entries) -> str:
    """Return what a legacy key becomes."""
    return map_text(key, entries).text


def legacy_key(key: str, entries: Entries) -> str:
    """Return what a production key goes back to."""
    return map_text(key, entries, "legacy").text


PLAIN = Description(
    table_number=1,
    schema_name=None,
    kind="r",
    id_types=("bigint",),
    id_collations=(None,),
    key_type="text",
    key_base_type="text",
    key_kind="text",
    can_try_input=True,
    state_types=(),
    changed_type=None,
    changed_kind="other",
    id_not_null=True,
    id_unique=True,
    id_unique_by_partition=False,
    id_in_order=True,
    id_is_generated=False,
    generated=(),
    has_children=False,
    has_update_rule=False,
    ancestors=(),
    may_select=True,
    may_update=True,
    rows_to_read="all",
    rows_to_update="all",
)
"""What the catalogue says about a bigint and a text."""
