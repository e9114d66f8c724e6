"""What the user's function returns or raises, as far as a row and a message can hold it. It may be anything."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from rowferry_queues.inspecting.content import ContentFault

MOST_VALUE_BYTES = 1024 * 1024
MOST_WORDS = 1000


def choose_values(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values of these names. Raises ContentFault where one is missing, or too long for a row."""
    for name in names:
        if name not in values:
            found = ", ".join(name for name in values if isinstance(cast("Any", name), str))[:MOST_WORDS] or "nothing"
            raise ContentFault("FunctionFailed", f"the function returned {found}, but no {name}")
        if measure(values[name]) > MOST_VALUE_BYTES:
            raise ContentFault("FunctionFailed", f"the function returned more than {MOST_VALUE_BYTES} bytes as {name}")
    return {name: values[name] for name in names}


def measure(value: Any) -> int:
    """Return how long a value is: of a text in characters, of what is written as JSON, and of bytes, in bytes."""
    if isinstance(value, str | bytes):
        return len(value)
    return len(msgspec.json.encode(value)) if isinstance(value, dict | list | tuple) else 0


def describe(error: BaseException) -> str:
    """Return the type of an error and what it says, at most MOST_WORDS characters of it; it may be anything."""
    try:
        return f"{type(error).__name__}: {error}"[:MOST_WORDS]
    except Exception:  # noqa: BLE001 - of the error's own code
        return type(error).__name__
