"""Finds the SQL files, in a checkout and in a wheel, and fills identifiers in."""

from functools import cache
from pathlib import Path
from typing import LiteralString, cast

from psycopg import sql

_PACKAGE = Path(__file__).parent.parent


@cache
def sql_folder() -> Path:
    """Return the folder of migrations/, functions/, views/ and statements/: the wheel's, else the checkout's."""
    packed = _PACKAGE / "sql"
    return packed if packed.is_dir() else _PACKAGE.parent / "sql"


@cache
def read_sql(path: Path) -> sql.SQL:
    """Return the text of a file that `list_sql` returned. The files are the project's own: their text is literal."""
    return sql.SQL(cast("LiteralString", path.read_text(encoding="utf-8")))


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return sql/statements/`name`.sql with `{placeholders}` filled in.

    Values are no parts of it: they go in as `%(parameters)s` on execution.
    """
    return read_sql(sql_folder() / "statements" / f"{name}.sql").format(**parts)


def list_sql(folder: str) -> list[Path]:
    """Return the SQL files of one folder below `sql_folder()`, by name."""
    return sorted((sql_folder() / folder).glob("*.sql"))
