"""Functions for [queue.inspect], as users write them; some of them badly."""

import io
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec


def count_words(stream: io.BufferedReader) -> dict[str, Any]:
    """Count words line by line."""
    return {"words": sum(len(line.split()) for line in stream), "name": stream.name}


def read_first(stream: io.BufferedReader) -> dict[str, Any]:
    """Read a few bytes and leave the others."""
    return {"words": stream.read(3).decode()}


def fail(stream: io.BufferedReader) -> dict[str, Any]:
    raise KeyError(stream.read(4).decode())


def swallow(stream: io.BufferedReader) -> dict[str, Any]:
    """Make something of an object that cannot be read."""
    try:
        return {"words": len(stream.read())}
    except Exception:  # noqa: BLE001
        return {"words": -1}


def return_list(stream: io.BufferedReader) -> Any:
    return [stream.read()]


def return_other(stream: io.BufferedReader) -> dict[str, Any]:
    return {"wrods": len(stream.read())}


def return_much(_stream: io.BufferedReader) -> dict[str, Any]:
    return {"words": "x" * 2_000_000}


def return_much_in_a_list(_stream: io.BufferedReader) -> dict[str, Any]:
    return {"words": ["x" * 1000] * 2000}


def leave(_stream: io.BufferedReader) -> dict[str, Any]:
    raise SystemExit


def spin(_stream: io.BufferedReader) -> dict[str, Any]:
    """Compute for ever."""
    while True:
        with suppress(Exception):
            msgspec.json.encode([1])


def hang(_stream: io.BufferedReader) -> dict[str, Any]:
    """Wait where no exception reaches."""
    time.sleep(600)
    return {"words": 1}


def hold_the_lock(_stream: io.BufferedReader) -> dict[str, Any]:
    """Search with a pattern that backtracks for ever, and lets no other thread run meanwhile."""
    return {"words": re.fullmatch(r"(a+)+b", "a" * 100)}


def end_process(stream: io.BufferedReader) -> dict[str, Any]:
    """End the process, unless the object is good."""
    if stream.read() != b"good":
        os._exit(3)
    return {"words": "good"}


def tell_and_spin(stream: io.BufferedReader) -> dict[str, Any]:
    """Write down the id of this process, in a file of the object's name, and compute for ever."""
    Path(stream.name).write_text(str(os.getpid()))
    return spin(stream)


def _return_odd(stream: io.BufferedReader, value: Any) -> dict[str, Any]:
    body = stream.read()
    return {"words": value if body == b"odd" else body.decode()}


def odd_return_surrogate(stream: io.BufferedReader) -> dict[str, Any]:
    return _return_odd(stream, "a\ud800b")


def odd_return_nul(stream: io.BufferedReader) -> dict[str, Any]:
    return _return_odd(stream, "a\0b")


def odd_return_huge_number(stream: io.BufferedReader) -> dict[str, Any]:
    """More digits than Python writes."""
    return _return_odd(stream, 10**5000)


def odd_return_deep(stream: io.BufferedReader) -> dict[str, Any]:
    """A list that holds itself."""
    deep: list[Any] = []
    deep.append(deep)
    return _return_odd(stream, deep)


def odd_return_object(stream: io.BufferedReader) -> dict[str, Any]:
    return _return_odd(stream, object())


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError


def odd_fail_oddly(stream: io.BufferedReader) -> dict[str, Any]:
    """Raise what cannot be said."""
    found = _return_odd(stream, None)
    if found["words"] is None:
        raise _Unspeakable
    return found
