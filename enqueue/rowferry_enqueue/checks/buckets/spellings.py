"""Finds out whether the bucket spells keys in another way: in another Unicode form, or without `+`."""

from collections.abc import Sequence
from contextlib import suppress
from unicodedata import normalize

from psycopg import sql

from rowferry.errors import ObjectError
from rowferry.plan import Entries, Side
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import head_object
from rowferry.s3.retry import TRIES

TRIED_KEYS = 3


def find_spelling(client: ObjectClient, side: Side, entries: Entries, missing: Sequence[str]) -> str:
    """Return what the bucket holds in the place of one of the first missing keys, and what to type; empty: nothing."""
    for key in missing[:TRIED_KEYS]:
        for spelled, expression in list_spellings(key, sql.Identifier(entries.key).as_string(None)):
            with suppress(ObjectError):
                client.ask(head_object(side.name, spelled), tries=TRIES)
                found = f"the bucket holds {spelled!a}, and not {key!a}"
                if entries.has_two_texts or entries.has_places:
                    return f"{found}: let these rows stay (`rows`), with `objects`, or correct the keys"
                behind = "" if entries.legacy_object is None else " behind `legacy_object`"
                return f"{found}: write `objects` of these [[entries]] with `{expression}`{behind}"
    return ""


def list_spellings(key: str, column: str) -> list[tuple[str, str]]:
    """Return the other spellings of a key, each with the SQL that yields it from the column."""
    tried = [
        (normalize("NFD", key), f"normalize({column}, NFD)"),
        (normalize("NFC", key), f"normalize({column}, NFC)"),
        (key.replace("+", " "), f"replace({column}, '+', ' ')"),
    ]
    return [(spelled, expression) for spelled, expression in tried if spelled != key]
