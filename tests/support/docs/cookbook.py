"""Reads docs/sql.md: its recipes, and the state of the queue that each is for."""

import re
from dataclasses import dataclass

from support.checkout import ROOT

PAGE = ROOT / "docs" / "sql.md"
BLOCK = re.compile(r"^(?:<!-- state: (?P<state>[a-z-]+) -->\n)?```sql\n(?P<sql>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One statement of the page."""

    title: str
    state: str | None
    sql: str


def read_recipes(text: str | None = None) -> list[Recipe]:
    """Return the recipes of the page, in order; each has a heading of its own."""
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    recipes: list[Recipe] = []
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title = part.splitlines()[0].strip()
        recipes += [Recipe(title, found["state"], found["sql"]) for found in BLOCK.finditer(part)]
    return recipes


def count_blocks(text: str) -> int:
    """Return how many blocks of SQL the page has, wherever they stand."""
    return len(re.findall(r"^```sql$", text, flags=re.MULTILINE))
