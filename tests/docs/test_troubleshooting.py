"""Every message in docs/troubleshooting.md is one that the code prints; no reason of a failed entry is missing."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

import rowferry.errors
from rowferry.errors import (
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    NotStarted,
    ObjectError,
    PreconditionFailed,
    SideFault,
)
from support.docs.doc_pages import ROOT, read_section

pytestmark = pytest.mark.texts

PAGE = ROOT / "docs" / "troubleshooting.md"
PRODUCT = ("rowferry", "enqueue", "worker", "queues", "cli")
REASONS = "Reasons of failed entries"
MESSAGES = (
    *("The plan", "The database", "The table", "The keys", "The buckets", "Commands", "A paused migration"),
    *(REASONS, "A worker's log"),
)
"""The sections whose tables quote messages in their first column."""
NEVER_LAST = (NotStarted, Cancelled, SideFault, BucketNotFound, CredentialsUnavailable, PreconditionFailed)
"""Errors that end no entry: the batch goes on later, or the migration is paused."""
OUR_MISTAKES = {"LegacyIsReadOnly", "WrongSide", "NotAProbe"}
"""Codes of requests that rowferry never sends."""


def read_messages(heading: str) -> list[str]:
    """Return what is quoted in the first cells of the tables below a heading."""
    rows = [line for line in read_section(PAGE, heading).splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", row)[1] for row in rows]
    return [quoted.strip() for cell in cells for _, quoted in re.findall(r"(`+)(.+?)\1", cell)]


@cache
def read_texts_of_the_product() -> list[str]:
    """Return what each file of the product's code and SQL can say: its texts, with `…` for what is put in."""
    python = [path for tree in PRODUCT for path in (ROOT / tree).rglob("*.py")]
    said = ["\n".join(find_texts(ast.parse(path.read_text(encoding="utf-8")))) for path in python]
    others = [*(ROOT / "sql").rglob("*.sql"), ROOT / "rowferry" / "s3" / "refusals.toml"]
    return said + [path.read_text(encoding="utf-8") for path in others]


def find_texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts in a module, but for docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def is_said(message: str) -> bool:
    """Return whether the product can print a message: every part between two `…` stands in one of its files."""
    parts = [part.strip() for part in message.split("…") if part.strip(" .,:;")]
    return bool(parts) and any(all(part in text for part in parts) for text in read_texts_of_the_product())


def test_every_message_is_one_that_the_code_prints(subtests: pytest.Subtests) -> None:
    assert is_said("cannot be read: …")
    assert not is_said("would have an empty legacy key of its own")
    for heading in MESSAGES:
        messages = read_messages(heading)
        assert messages, f"{heading} quotes none"
        for message in messages:
            with subtests.test(f"{heading}: {message}"):
                assert re.fullmatch(r"HTTP \d{3}", message) or is_said(message), "nothing in the code says it"


def find_error_codes() -> Iterator[str]:
    """Yield the code of each error that the product itself makes of an object, and that may end an entry."""
    for path in [path for tree in ("rowferry", "worker", "queues") for path in (ROOT / tree).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(code)), _]):
                    kind = getattr(rowferry.errors, name, None)
                    if isinstance(kind, type) and issubclass(kind, ObjectError) and not issubclass(kind, NEVER_LAST):
                        yield code
                case _:
                    pass


def test_every_reason_of_a_failed_entry_is_explained() -> None:
    made = set(find_error_codes()) - OUR_MISTAKES
    assert len(made) > 15, "a test without a subject cannot fail"
    assert not made - set(read_messages(REASONS))
