"""The forms that entries of a plan can have, for the benches: a table, its [[entries]], and rows for both."""

from dataclasses import dataclass, field
from typing import Any

from bench.migration import make_plan
from rowferry.db.connection import connect
from rowferry.plan import Entries, Plan

NAME = "lpad(i::text, 9, '0') || '.png'"


@dataclass(frozen=True, slots=True)
class Form:
    """One form; its table has the name `pictures`."""

    columns: str
    row: str
    """The values of a legacy row, given its number i."""
    entries: dict[str, Any] = field(default_factory=dict[str, Any])
    """What differs from the plain form."""
    objects: int = 1
    """Of a row."""

    def make_plan(self, legacy_url: str, production_url: str) -> Plan:
        """Return the plan that moves the rows between two servers."""
        known: dict[str, Any] = {
            "table": "pictures",
            "id": "id",
            "key": "path",
            "legacy_prefix": "image/",
            "production_prefix": "avatar/",
        }
        return make_plan(Entries(**(known | self.entries)), legacy_url, production_url)

    def make_rows(self, rows: int) -> None:
        """Make the table anew with this many legacy rows, and empty the queue."""
        statements = (
            "drop table if exists pictures",
            f"create table pictures ({self.columns})",
            f"insert into pictures select {self.row} from generate_series(1, {rows}) as i",
            "vacuum analyze pictures",
            "truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure, rowferry.migration cascade",
        )
        with connect("bench", autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


FORMS = {
    "plain": Form("id bigint primary key, path text not null", f"i, 'image/' || {NAME}"),
    "URL": Form(
        "id bigint primary key, path text not null",
        f"i, 'https://old.example.com/image/' || {NAME}",
        {
            "legacy_prefix": "https://old.example.com/",
            "production_prefix": "https://new.example.com/",
            "legacy_object": "",
            "production_object": "",
            "encoding": "percent",
        },
    ),
    "state": Form(
        "id bigint primary key, path text not null, service text not null",
        f"i, 'image/' || {NAME}, 'amazon'",
        {"legacy_prefix": "", "production_prefix": "", "moved": {"service": ("amazon", "r2")}},
    ),
    "composite id": Form(
        "tenant integer, number integer, path text not null, primary key (tenant, number)",
        f"i / 1000, i % 1000, 'image/' || {NAME}",
        {"id": ("tenant", "number")},
    ),
    "jsonb": Form(
        "id bigint primary key, path jsonb not null",
        "i, jsonb_build_object('id', 'image/' || i || '.png', 'size', i, 'derivatives', "
        "jsonb_build_object('small', jsonb_build_object('id', 'image/' || i || '-s.png')))",
        {"path": "$.derivatives.*.id"},
    ),
    "array of two": Form(
        "id bigint primary key, path text[] not null",
        "i, array['image/' || i || '-1.png', 'image/' || i || '-2.png']",
        {"path": "$[*]"},
        objects=2,
    ),
    "computed, two objects": Form(
        "id bigint primary key, path text not null, service text not null",
        f"i, {NAME}, 'amazon'",
        {
            "legacy_prefix": "",
            "production_prefix": "",
            "moved": {"service": ("amazon", "r2")},
            "objects": "array['original/' || id || '/' || path, 'small/' || id || '/' || path]",
        },
        objects=2,
    ),
    "rows stay": Form(
        "id bigint primary key, path text not null",
        f"i, {NAME}",
        {"legacy_prefix": "", "production_prefix": "", "rows": "stay"},
    ),
}
"""Each form with its name on the page; the first is what the others are held against."""
