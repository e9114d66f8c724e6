"""Savepoints within a batch's transaction, of one round trip each: its COMMIT releases them."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Literal

import psycopg

from rowferry.db.connection import Connection
from rowferry.db.statements import own_queries


@contextmanager
def savepoint(connection: Connection, name: Literal["work", "rows"]) -> Generator[None]:
    """Undo the block's statements if it raises, and nothing before it. The caller holds the transaction.

    `work`: of a whole batch; `rows`: of rows that are written at once, within that, with all constraints checked at
    each statement. Raises what the block raises; where the connection is lost, nothing is left to undo.
    """
    begin, undo = own_queries()[f"begin_{name}"], own_queries()[f"undo_{name}"]
    connection.execute(begin, prepare=False)  # several statements in one
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute(undo, prepare=False)
        raise
