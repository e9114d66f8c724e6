"""Makes standard output and standard error take every text, whatever their encoding is."""

import codecs
import io
import json
import sys
from contextlib import suppress

NAME = "rowferry"
"""Of the codec error handler."""
PLAIN = dict(zip("▁▂▃▄▅▆▇█·…–", ".:-=+*%#-.-", strict=True)) | {"≥": ">=", "≤": "<="}
"""What stands for signs of views and tables; a sparkline keeps its shape and its width."""


def fit_streams() -> None:
    r"""Let standard output and standard error write what their encoding has not: a plain sign, or `\u00e9`.

    That is the escape of JSON, so a document stays whole. A stream that was told what to do with such text does that.
    """
    codecs.register_error(NAME, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in {"strict", "surrogateescape"}:
            stream.reconfigure(errors=NAME)


def close_output() -> None:
    """Give up what standard output still holds: the interpreter would try to write it again at its end."""
    with suppress(OSError):
        sys.stdout.close()


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign) or json.dumps(sign)[1:-1] for sign in found), error.end
