"""The views and the SQL functions as pages of docs/: the comments at the head of their files, as they stand there."""

import re
from collections.abc import Iterator

from references.words import block, fill
from rowferry.db.connection import Connection
from rowferry.db.statements import list_sql, read_head, split_queries

COLUMNS = """
    select c.relname as name, a.attname as name_of_column, format_type(a.atttypid, a.atttypmod) as type
    from pg_class as c inner join pg_attribute as a on a.attrelid = c.oid
    where c.relnamespace = 'rowferry'::regnamespace and c.relkind = 'v' and a.attnum > 0 and not a.attisdropped
    order by c.relname, a.attnum
"""

CALLERS = {
    "operator": ("For operators", "What `rowferry init --grants ROLE --for operator` lets a role call."),
    "enqueuer": ("For enqueuers and applications", "With `--for enqueuer`."),
    "worker": ("For workers", "With `--for worker`: all that a worker does to the queue."),
    "views": ("For every role", "With any `--for`."),
    "owner": ("For the owner of the schema", "Other functions call them, or the commands that they name."),
    "trigger": ("Triggers", "PostgreSQL calls them, whoever changes a row."),
}
"""Who may call a function, by the name of its grant: the heading and a sentence."""

_SIGNATURE = re.compile(
    r"create or replace (?:function )?(rowferry\.\w+\(.*?\)\nreturns .*?(?=\nlanguage)|aggregate .*?(?= \(\n))",
    re.DOTALL,
)
_GRANTED = re.compile(r"grant execute on function(.*?)\bto\b", re.DOTALL)


def write_views(connection: Connection) -> Iterator[str]:
    """Yield the paragraphs of docs/views.md below those written by hand. The columns are those of the database."""
    columns = read_columns(connection)
    for path in list_sql("views"):
        yield f"## rowferry.{path.stem}"
        yield block(read_head(path))
        yield fill("**Columns:** " + ", ".join(f"`{name}` {type_}" for name, type_ in columns[path.stem]) + ".")


def read_columns(connection: Connection) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each view with their types."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in connection.execute(COLUMNS).fetchall():
        found.setdefault(row["name"], []).append((row["name_of_column"], row["type"]))
    return found


def write_functions() -> Iterator[str]:
    """Yield the paragraphs of docs/functions.md below those that are written by hand."""
    granted, paths = read_grants(), list_sql("functions")
    signatures = {path: _SIGNATURE.findall(path.read_text(encoding="utf-8"))[0] for path in paths}
    for caller, (heading, sentence) in CALLERS.items():
        yield f"## {heading}"
        yield sentence
        for path, signature in signatures.items():
            found = "trigger" if signature.endswith("returns trigger") else granted.get(path.stem, "owner")
            if found == caller:
                yield f"### rowferry.{path.stem}"
                yield block([*signature.splitlines(), "", *read_head(path)])


def read_grants() -> dict[str, str]:
    """Return who may execute each function, by the names of the grants in sql/queries/grants.sql."""
    (path,) = [path for path in list_sql("queries") if path.stem == "grants"]
    grants = dict(split_queries(path.read_text(encoding="utf-8")))
    found: dict[str, str] = {}
    for caller in CALLERS:
        for functions in _GRANTED.findall(grants.get(f"grant_{caller}", "")):
            found |= dict.fromkeys(re.findall(r"rowferry\.(\w+)", functions), caller)
    return found
