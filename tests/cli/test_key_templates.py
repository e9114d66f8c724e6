"""`plan --discover` learns from rows and keys how an application computes the keys."""

import hashlib
from collections.abc import Mapping

import pytest

from rowferry_cli.discover.computed_keys.row_texts import RowTexts, group_by_strong, list_strong
from rowferry_cli.discover.computed_keys.templates import learn
from rowferry_cli.discover.evidence.catalogue import Column

TYPES = {"id": "bigint", "uuid": "uuid", "path": "text", "bucket": "text", "digest": "text", "ending": "text",
         "tenant": "text", "created": "timestamp without time zone"}  # fmt: skip
COLUMNS = {name: Column(name, kind, "text" if kind == "text" else None, False) for name, kind in TYPES.items()}


def make_row(number: int) -> dict[str, str]:
    digest = hashlib.sha1(b"%d" % number, usedforsecurity=False).hexdigest()
    uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    return {
        "id": f"{number}",
        "uuid": uuid,
        "path": f"a b/file {number}.pdf",
        "bucket": f"b{number % 2}",
        "digest": digest[::-1],
        "ending": "png" if number % 3 else "pdf",
        "tenant": f"account_{number % 2}",
        "created": f"2026-01-{number % 28 + 1:02} 10:00:00",
    }


def slice_row(row: Mapping[str, str]) -> dict[str, str]:
    """Return a key for each expression that is to be learned."""
    time = [f"to_char(created, '{part}')" for part in ("YYYY", "MM", "DD")]
    uuid, digest, number = row["uuid"], row["digest"], f"{int(row['id']):09}"
    hashed = hashlib.sha256(row["id"].encode()).hexdigest()
    year, month, day = row["created"][:10].split("-")
    sha256 = "encode(sha256(convert_to(id::text, 'UTF8')), 'hex')"
    padded = "lpad(id::text, 9, '0')"
    return {
        "uuid::text": uuid,
        "'att/' || substr(uuid::text, 1, 1) || '/' || substr(uuid::text, 2, 1) || '/' || uuid::text":
            f"att/{uuid[0]}/{uuid[1]}/{uuid}",
        "'lfs/' || substr(digest, 1, 2) || '/' || substr(digest, 3, 2) || '/' || substr(digest, 5)":
            f"lfs/{digest[:2]}/{digest[2:4]}/{digest[4:]}",
        "'f/' || digest || '_' || uuid::text || '.' || ending": f"f/{digest}_{uuid}.{row['ending']}",
        "'stub/' || bucket || '/' || path || '/' || uuid::text": f"stub/{row['bucket']}/{row['path']}/{uuid}",
        "tenant || '/files/' || id::text || '/' || digest": f"{row['tenant']}/files/{row['id']}/{digest}",
        f"'h/' || substr({sha256}, 1, 2) || '/' || {sha256}": f"h/{hashed[:2]}/{hashed}",
        f"'p/' || substr({padded}, 1, 3) || '/' || substr({padded}, 4, 3) || '/' || substr({padded}, 7, 3) "
        "|| '/' || digest || '.webp'": f"p/{number[:3]}/{number[3:6]}/{number[6:]}/{digest}.webp",
        f"{time[0]} || '/' || {time[1]} || '/' || {time[2]} || '/' || uuid::text":
            f"{year}/{month}/{day}/{uuid}",
        "'users/' || uuid::text || '/profile.png'": f"users/{uuid}/profile.png",
    }  # fmt: skip


ROWS = [make_row(number) for number in range(1, 40)]


@pytest.mark.parametrize("number", range(len(slice_row(ROWS[0]))))
def test_a_key_that_is_made_of_columns_is_learned(number: int) -> None:
    expressions = list(slice_row(ROWS[0]))
    keys = [slice_row(row)[expressions[number]] for row in ROWS]
    by_token = group_by_strong(keys)
    pairs = [
        (at, RowTexts(row, COLUMNS).explain(key))
        for at, row in enumerate(ROWS)
        for key in {key for text in list_strong(row, COLUMNS) for key in by_token.get(text, ())}
    ]
    assert [template.sql for template in learn(pairs)] == [expressions[number]]


def test_keys_of_other_rows_teach_nothing() -> None:
    texts = [RowTexts(row, COLUMNS) for row in ROWS]
    pairs = [(at, text.explain(f"elsewhere/{at * 7919 % 1000}/x.bin")) for at, text in enumerate(texts)]
    assert learn(pairs) == []
