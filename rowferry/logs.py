"""Logs: a fixed message and its fields, as JSON lines or as text."""

import logging
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

from pythonjsonlogger.json import JsonFormatter

from rowferry.formatting import show_text

LogFormat = Literal["auto", "text", "json"]

PACKAGES = ("rowferry", "rowferry_worker", "rowferry_enqueue", "rowferry_exporter", "rowferry_cli")
"""Names of the loggers whose records are ours."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """`2026-11-21 06:00:00.123 WARNING batch finished  batch=7 verdict=RETRY`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; an exception's traceback follows below it."""
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        fields = " ".join(f"{name}={_show(value)}" for name, value in vars(record).items() if name not in _STANDARD)
        level = "" if record.levelno <= logging.INFO else f"{record.levelname} "
        line = f"{moment} {level}{show_text(record.getMessage())}{'  ' if fields else ''}{fields}"
        if not record.exc_info:
            return line
        return "\n".join([line, *map(show_text, self.formatException(record.exc_info).splitlines())])


def set_up_logging(log_format: LogFormat, *, verbose: bool = False) -> None:
    """Send the logs of rowferry to stderr; `auto` is text on a terminal and JSON lines elsewhere."""
    if log_format == "auto":
        log_format = "text" if sys.stderr.isatty() else "json"
    handler = logging.StreamHandler()
    if log_format == "text":
        handler.setFormatter(TextFormatter())
        handler.addFilter(AddFields("batch", "attempt"))
    else:
        handler.setFormatter(_json_formatter())
        handler.addFilter(AddFields())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)
    # It warns of a connection that is lost in a pipeline; who has lost it says so.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def _json_formatter() -> JsonFormatter:
    formatter = JsonFormatter(
        "{asctime}{levelname}{name}{message}",
        style="{",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        datefmt="%Y-%m-%dT%H:%M:%SZ",
    )
    formatter.converter = time.gmtime
    return formatter


def _show(value: object) -> str:
    text = str(value)
    return show_text(repr(text) if " " in text or not text else text)


_of_process: dict[str, object] = {}
_of_thread: ContextVar[Mapping[str, object]] = ContextVar("log fields")
_NONE: Mapping[str, object] = {}


def set_process_fields(**fields: object) -> None:
    """Add fields to each line of this process from now on."""
    _of_process.update(fields)


@contextmanager
def log_fields(**fields: object) -> Generator[None]:
    """Add fields to each line that this thread logs in the block."""
    token = _of_thread.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _of_thread.reset(token)


def current_fields() -> Mapping[str, object]:
    """Return this thread's fields, for another thread that works for it."""
    return _of_thread.get(_NONE)


class AddFields(logging.Filter):
    """Adds the fields above to each record of a handler; a record's own fields have precedence."""

    def __init__(self, *only: str) -> None:
        """Add only the fields of these names; none given: all."""
        super().__init__()
        self._only = frozenset(only)

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in {**_of_process, **current_fields()}.items():
            if name not in vars(record) and (not self._only or name in self._only):
                setattr(record, name, value)
        return True
