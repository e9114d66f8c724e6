"""The forms of entries that plans know, each with a table and a plan."""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from support.entries.entry_table import keyed

KEPT = {"b": [1, None, "x"], "a": "image/no.png"}


@dataclass(frozen=True)
class Form:
    """A table, a plan, and what its rows hold before and after."""

    columns: str
    entries: dict[str, Any]
    before: list[tuple[Any, ...]]
    after: list[tuple[Any, ...]]
    objects: dict[str, str]
    """The legacy keys and the production keys that they become."""


FORMS = {
    "url": Form(
        "id bigint primary key, url text",
        keyed("url", "//old.example.com/", "//cdn.example.com/u/", legacy_object="", production_object="u/"),
        [(1, "//old.example.com/o/1.png"), (2, "//elsewhere/o/2.png"), (3, None), (4, "")],
        [(1, "//cdn.example.com/u/o/1.png"), (2, "//elsewhere/o/2.png"), (3, None), (4, "")],
        {"o/1.png": "u/o/1.png"},
    ),
    "percent": Form(
        "id bigint primary key, url text",
        keyed("url", "https://old/", "https://new/", legacy_object="", production_object="", encoding="percent"),
        [(1, "https://old/a%20b%C3%A9.png?v=1#x"), (2, "https://old/100%.png")],
        [(1, "https://new/a%20b%C3%A9.png?v=1#x"), (2, "https://new/100%.png")],
        {"a bé.png": "a bé.png", "100%.png": "100%.png"},
    ),
    "folder": Form(
        "id bigint primary key, uri text",
        keyed("uri", "s3://old/", "s3://new/", names="folder", legacy_object="", production_object="runs/"),
        [(1, "s3://old/0/1"), (2, "s3://elsewhere/0/2"), (3, None), (4, "s3://old/0/4/")],
        [(1, "s3://new/0/1"), (2, "s3://elsewhere/0/2"), (3, None), (4, "s3://new/0/4/")],
        {"0/1/a": "runs/0/1/a", "0/1/b/c": "runs/0/1/b/c", "0/4/d": "runs/0/4/d"},
    ),
    "computed folders": Form(
        "id bigint primary key, store text",
        {
            "names": "folder",
            "objects": "'up/' || id",
            "optional": "'thumbs/' || id",
            "moved": {"store": ["old", "new"]},
            "legacy_object": "",
            "production_object": "v2/",
        },
        [(1, "old"), (2, "old"), (3, "elsewhere")],
        [(1, "new"), (2, "new"), (3, "elsewhere")],
        {"up/1/a": "v2/up/1/a", "thumbs/1/b": "v2/thumbs/1/b", "up/2/c": "v2/up/2/c"},
    ),
    "URLs in texts": Form(
        "id bigint primary key, body text",
        keyed(
            "body",
            "https://old/",
            "https://new/v2/",
            within="text",
            legacy_object="",
            production_object="v2/",
            encoding="percent",
        ),
        [
            (
                1,
                "<p>A <img src=\"https://old/a%20b.png?w=1&amp;h=2\"> é\n<a href='https://old/s/c.pdf'>(https://old/s/c.pdf).",
            ),
            (2, "See https://elsewhere/x.png, and https://old/"),
            (3, "no URL"),
            (4, None),
            (5, "100% of {1} https://old/d.png."),
        ],
        [
            (
                1,
                "<p>A <img src=\"https://new/v2/a%20b.png?w=1&amp;h=2\"> é\n<a href='https://new/v2/s/c.pdf'>"
                "(https://new/v2/s/c.pdf).",
            ),
            (2, "See https://elsewhere/x.png, and https://old/"),
            (3, "no URL"),
            (4, None),
            (5, "100% of {1} https://new/v2/d.png."),
        ],
        {"a b.png": "v2/a b.png", "s/c.pdf": "v2/s/c.pdf", "d.png": "v2/d.png"},
    ),
    "storage prefix": Form(
        "id bigint primary key, path text",
        keyed("path", "", "v2/", legacy_object="media/", production_object="media/v2/"),
        [(1, "1.png")],
        [(1, "v2/1.png")],
        {"media/1.png": "media/v2/1.png"},
    ),
    "state": Form(
        "id bigint primary key, key text not null, service_name text not null, store integer, flag boolean",
        keyed("key", "", "", moved={"service_name": ["amazon", "r2"], "store": [1, 2], "flag": [False, True]}),
        [(1, "k1", "amazon", 1, False), (2, "k2", "local", 1, False), (3, "k3", "amazon", None, False)],
        [(1, "k1", "r2", 2, True), (2, "k2", "local", 1, False), (3, "k3", "amazon", None, False)],
        {"k1": "k1"},
    ),
    "state and prefix": Form(
        "id bigint primary key, key text not null, store smallint",
        keyed("key", "a/", "b/", moved={"store": [1, 2]}),
        [(1, "a/1", 1), (2, "a/2", 2)],
        [(1, "b/1", 2), (2, "a/2", 2)],
        {"a/1": "b/1"},
    ),
    "composite id": Form(
        "tenant text, number integer, path text, primary key (tenant, number)",
        keyed("path", id=["tenant", "number"]),
        [("a", 2, "image/a2"), ("a", 10, "image/a10"), ('b"', 1, "image/b1")],
        [("a", 2, "avatar/a2"), ("a", 10, "avatar/a10"), ('b"', 1, "avatar/b1")],
        {"image/a2": "avatar/a2", "image/a10": "avatar/a10", "image/b1": "avatar/b1"},
    ),
    "jsonb": Form(
        "id bigint primary key, image_data jsonb",
        keyed("image_data", path="$.versions.*[*].id"),
        [
            (1, {**KEPT, "versions": {"s": [{"id": "image/1s"}, {"id": 7}], "l": [{"id": "image/1l"}], "o": 3}}),
            (2, {"versions": []}),
            (3, None),
        ],
        [
            (1, {**KEPT, "versions": {"s": [{"id": "avatar/1s"}, {"id": 7}], "l": [{"id": "avatar/1l"}], "o": 3}}),
            (2, {"versions": []}),
            (3, None),
        ],
        {"image/1s": "avatar/1s", "image/1l": "avatar/1l"},
    ),
    "json in text": Form(
        "id bigint primary key, data text",
        keyed("data", path="$.id"),
        [(1, '{"id": "image/1", "n": 1.50}')],
        [(1, '{"n": 1.50, "id": "avatar/1"}')],
        {"image/1": "avatar/1"},
    ),
    "array": Form(
        "id bigint primary key, paths varchar(100)[]",
        keyed("paths", path="$[*]"),
        [(1, ["image/1", None, "other", "image/2"]), (2, []), (3, None)],
        [(1, ["avatar/1", None, "other", "avatar/2"]), (2, []), (3, None)],
        {"image/1": "avatar/1", "image/2": "avatar/2"},
    ),
    "computed": Form(
        "id bigint primary key, file_name text, store integer not null default 1",
        keyed(
            "file_name",
            "",
            "",
            production_object="m/",
            moved={"store": [1, 2]},
            objects="array['o/' || id || '/' || file_name, 's/' || id || '/' || file_name]",
            optional="'tiny/' || id",
        ),
        [(1, "a.png", 1), (2, "b.png", 1), (3, None, 1), (4, "", 1)],
        [(1, "a.png", 2), (2, "b.png", 2), (3, None, 1), (4, "", 1)],
        {
            "o/1/a.png": "m/o/1/a.png",
            "s/1/a.png": "m/s/1/a.png",
            "o/2/b.png": "m/o/2/b.png",
            "s/2/b.png": "m/s/2/b.png",
            "tiny/2": "m/tiny/2",
        },
    ),
}


def adapt(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row as psycopg takes it."""
    return tuple(Jsonb(value) if isinstance(value, dict) else value for value in row)
