"""How long work says what it is at: to a function that its caller gives."""

from collections.abc import Callable

OnProgress = Callable[[str], None]
"""Told, in a few words, what a long scan is at; from any thread."""


def ignore_progress(words: str) -> None:
    """Ignore it."""
    del words
