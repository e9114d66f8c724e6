"""Secrets from the environment or from files that it names: NAME, or NAME_FILE as containers and systemd have it."""

from collections.abc import Mapping
from pathlib import Path

from rowferry.errors import UsageError


def read_secret(environ: Mapping[str, str], name: str) -> str:
    """Return the value of the variable `name`, or what the file in `name`_FILE holds; "" when neither is set.

    White space around a file's content is dropped: most editors end a file with a newline.
    Raises UsageError, which repeats paths and never content, when both are set or the file cannot be read.
    """
    value, path = environ.get(name, ""), environ.get(f"{name}_FILE", "")
    if value and path:
        raise UsageError(f"{name} and {name}_FILE are both set; leave one of them out.")
    return _read_file(f"{name}_FILE", Path(path)) if path else value


def _read_file(variable: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{variable} names {path}, which is not text.") from None
    except OSError as error:
        raise UsageError(f"{variable} names {path}, which cannot be read: {error.strerror}.") from error
