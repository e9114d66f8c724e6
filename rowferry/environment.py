"""Reads secrets from a variable NAME, or from the file in NAME_FILE, as containers and systemd provide them."""

from collections.abc import Mapping
from pathlib import Path

from rowferry.errors import UsageError


def read_secret(environ: Mapping[str, str], name: str) -> str:
    """Return the variable `name`, or the content of the file in `name`_FILE, stripped; "" when neither is set.

    Raises UsageError, which quotes the path and never the content, when both are set or the file cannot be read.
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
