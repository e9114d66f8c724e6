"""What every log line says of where it comes from: the worker, and while a batch is in hand, the batch and attempt."""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_of_process: dict[str, object] = {}
_of_thread: ContextVar[Mapping[str, object]] = ContextVar("log fields")
_NONE: Mapping[str, object] = {}


def set_process_fields(**fields: object) -> None:
    """Have each line of this process say these from now on."""
    _of_process.update(fields)


@contextmanager
def log_fields(**fields: object) -> Generator[None]:
    """Have each line that this thread logs in the block say these as well."""
    token = _of_thread.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _of_thread.reset(token)


def current_fields() -> Mapping[str, object]:
    """Return what this thread's lines say just now, for another thread that works for it."""
    return _of_thread.get(_NONE)


class AddFields(logging.Filter):
    """Adds these fields to each record that passes a handler; what a line says of its own goes before them."""

    def __init__(self, *only: str) -> None:
        """`only`: the names to add; none given: all of them."""
        super().__init__()
        self._only = frozenset(only)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        for name, value in {**_of_process, **current_fields()}.items():
            if name not in vars(record) and (not self._only or name in self._only):
                setattr(record, name, value)
        return True
