"""The facts of one object, and what a user's function returns of it: in its own process, since that may not end."""

from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any, cast

import msgspec

from rowferry.functions import Function, load_function
from rowferry.queue_spec import describe_fault
from rowferry_queues.inspect.content import PIECE_BYTES, ContentFault, Inspection
from rowferry_queues.inspect.spec import InspectSettings

MOST_VALUE_BYTES = 1024 * 1024


def inspect(
    chunks: Iterator[bytes], settings: InspectSettings, key: str, told: str, *, is_cut: bool = False
) -> dict[str, Any]:
    """Return the facts of an object by name, and what its function returns. Blocks where the chunks do.

    `told`: its Content-Encoding; `is_cut`: only its beginning was asked for. Raises ContentFault, and errors of chunks.
    """
    function = None if settings.function is None else load_function(settings.function)
    inspection = Inspection(chunks, settings, key, told)
    values = {} if function is None else choose_values(call(function, inspection), settings)
    if function is None or settings.facts:
        inspection.read_rest(is_cut=is_cut)
    return {**inspection.read_facts(), **values}


def call(function: Function, inspection: Inspection) -> dict[str, Any]:
    """Return what a function returns of an object. Raises ContentFault where it fails, or the content does."""
    try:
        returned: Any = function(BufferedReader(inspection.content, PIECE_BYTES))
        if not isinstance(returned, Mapping):
            raise TypeError(f"it returned {type(returned).__name__}, not a dict")
        values = dict(cast("Mapping[str, Any]", returned))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is the object's failure
        words = f"the function failed with {describe_fault(error)}"
        raise inspection.fault or ContentFault("FunctionFailed", words) from None
    if inspection.fault is not None:
        raise inspection.fault
    return values


def choose_values(values: Mapping[str, Any], settings: InspectSettings) -> dict[str, Any]:
    """Return the values that have columns. Raises ContentFault where one is missing, or too long for a row."""
    names = [name for name in settings.columns if name not in settings.facts]
    for name in names:
        if name not in values:
            found = ", ".join(map(str, values))[:1000] or "nothing"
            raise ContentFault("FunctionFailed", f"the function returned {found}, but no {name}")
        value = values[name]
        written = msgspec.json.encode(value) if isinstance(value, dict | list | tuple) else value
        if isinstance(written, str | bytes) and len(written) > MOST_VALUE_BYTES:
            raise ContentFault("FunctionFailed", f"the function returned more than {MOST_VALUE_BYTES} bytes as {name}")
    return {name: values[name] for name in names}
