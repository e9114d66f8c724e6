"""How SQL in a plan names columns and writes texts. Pure."""

import re

_WORDS = """
all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
returning right select session_user similar some symmetric system_user table tablesample then to trailing true
union unique user using variadic verbose when where window with
"""
RESERVED = frozenset(_WORDS.split())
"""Words that are no names unless they are quoted. Source: pg_get_keywords(), catcode R and T."""


def quote_text(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return a column's name as SQL writes it."""
    is_plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'
