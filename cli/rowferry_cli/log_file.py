"""The log file of a run: what it logs, and what its workers do."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from rowferry.errors import UsageError
from rowferry.formatting import show_text
from rowferry.logs import PACKAGES, TextFormatter


def open_own(path: str, flags: int) -> int:
    """Open a file that only its owner may read, if it is new: it holds keys and error texts."""
    return os.open(path, flags, 0o600)


class LogFile(logging.Handler):
    """A log file, of lines and of records. A full disk stops no work: lines are dropped, with one warning on stderr."""

    def __init__(self, path: Path) -> None:
        """Raise UsageError when it cannot be opened."""
        super().__init__()
        self.setFormatter(TextFormatter())
        self.path = path
        self._has_warned = False
        try:
            self._file = FileIO(path, "ab", opener=open_own)
        except OSError as error:
            raise UsageError(f"The log file {path} cannot be written: {error.strerror}.") from error

    def write(self, line: str) -> None:
        """Append a line, unless the file is closed."""
        if self._file.closed:
            return
        try:
            self._file.write(f"{line}\n".encode(errors="replace"))
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                warning = f"The log file {self.path} is incomplete: {error.strerror}. The work goes on."
                sys.stderr.write(f"{show_text(warning)}\n")

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record."""
        self.write(self.format(record))

    def close(self) -> None:
        """Close it; some file systems report only now that they are full."""
        with suppress(OSError):
            self._file.close()
        super().close()


@contextmanager
def log_to_file(path: Path) -> Generator[LogFile]:
    """Send the logs of rowferry to a file as well, and yield it. Raises UsageError when it cannot be opened."""
    log = LogFile(path)
    loggers = [logging.getLogger(package) for package in PACKAGES]
    for logger in loggers:
        logger.setLevel(logging.INFO)
        logger.addHandler(log)
    try:
        yield log
    finally:
        for logger in loggers:
            logger.removeHandler(log)
        log.close()
