"""A seeded generator of items: books with a name for each table."""

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random
from typing import Any

from book_import.tables import TABLES

FIRST_DAY = date(2000, 1, 1)
DAYS = 8_000


def generate_items(count: int, *, seed: int = 1, names: int = 500, broken: int = 0) -> Iterator[dict[str, Any]]:
    """Yield so many books, the same ones for the same seed.

    `names`: how many different ones there are for each table; the fewer, the more often two books write one row.
    `broken`: how many books lack a name, which the table refuses: book by book, those of one table after the other.
    """
    random = Random(seed)  # noqa: S311 - nothing secret
    faults = {position: TABLES[number % len(TABLES)] for number, position in enumerate(choose(count, broken, seed))}
    for number in range(count):
        book: dict[str, Any] = {"id": f"book-{number:07}"}
        book["published"] = (FIRST_DAY + timedelta(days=random.randrange(DAYS))).isoformat()
        for table in TABLES:
            book[table] = f"{table} {random.randrange(names)}"
        if number in faults:
            book[faults[number]] = ""
        yield book


def choose(count: int, broken: int, seed: int) -> list[int]:
    """Return the numbers of the books that lack a name."""
    return Random(seed + 1).sample(range(count), broken)  # noqa: S311 - nothing secret
