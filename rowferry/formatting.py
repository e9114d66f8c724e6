"""Numbers, durations and foreign text in messages, and what a mistyped name may have been meant to be."""

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (a terminal obeys the escape), line breaks, and marks that change the direction of text."""


def show_text(text: object) -> str:
    r"""Return foreign text (a key, a server's message) with control characters escaped as in Python: `\x1b`.

    Backslashes are not escaped: the result is not to be parsed.
    """
    return _UNFIT.sub(lambda found: repr(found[0])[1:-1], str(text))


def format_json(document: object, *, indent: int | None = None) -> str:
    r"""Return a document as JSON for a terminal or a file: what a terminal would obey is escaped as in JSON, `\u202e`.

    Letters of all languages stay as they are. A parser reads the same as without the escapes. Times are as in ISO 8601,
    durations in seconds.
    """
    text = json.dumps(document, indent=indent, default=_make_plain, ensure_ascii=False)
    return _UNFIT.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _make_plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def shorten(text: str, most: int = 120) -> str:
    """Return a text of at most so many characters, its middle left out: a JSON document of keys may be long."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def hide_unfit(pattern: str) -> str:
    """Return a LIKE pattern with `_`, which matches any character, for each one that `show_text` escapes."""
    return _UNFIT.sub("_", pattern)


def count(number: int, one: str, many: str) -> str:
    """Return `1 batch`, `1,234 batches`."""
    return f"{number:,} {one if number == 1 else many}"


def count_batches(number: int) -> str:
    return count(number, "batch", "batches")


def count_entries(number: int) -> str:
    return count(number, "entry", "entries")


def format_rate(per_second: float) -> str:
    """Return a rate in two digits at least, `1,234`, `27`, `4.5`, `0.042`: only what does not move is `0`."""
    return f"{per_second:,.0f}" if per_second >= 10 or not per_second else f"{per_second:.2g}"


def format_duration(duration: timedelta) -> str:
    """Return a duration in its two largest units: `45 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    seconds = round(duration.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3600} h"


_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}

LONGEST = timedelta(days=36_500)
"""PostgreSQL and timedelta take more, but a longer duration is a mistake."""


def parse_duration(text: str) -> timedelta | None:
    """Parse `90s`, `30m`, `12h`, `1.5d` or `4w`, and `ms` and `min`; None: the text is none of them."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?) ?(ms|s|m|min|h|d|w)", text.strip(), re.ASCII)
    if found is None:
        return None
    seconds = float(found[1]) * _SECONDS[found[2]]
    return timedelta(seconds=seconds) if seconds <= LONGEST.total_seconds() else None


def parse_seconds(text: str) -> float | None:
    """Parse a bare number of seconds or a duration; None: the text is neither."""
    if re.fullmatch(r"\d{1,12}(?:\.\d{0,6})?|\.\d{1,6}", text.strip(), re.ASCII):
        return float(text)
    duration = parse_duration(text)
    return None if duration is None else duration.total_seconds()


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a mistyped one, in any case; None where none is like it."""
    by_letters = {one.casefold(): one for one in known}
    return next((by_letters[near] for near in get_close_matches(name.casefold(), by_letters, n=1)), None)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean path?)`, for the end of a clause; empty where no known name is like it."""
    near = find_nearest(name, known)
    return f" (did you mean {near}?)" if near is not None else ""
