"""`--verbose`: logs each object and each row."""

import logging
import time
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

from rowferry.batch import EntryResult, Outcome

_log = logging.getLogger(__name__)


class HasOutcome(Protocol):
    """The result of a copy."""

    @property
    def outcome(self) -> Outcome:
        """What became of the object."""
        ...


T = TypeVar("T", bound=HasOutcome)


def log_copy(copy: Coroutine[Any, Any, T], source_key: str, target_key: str) -> Coroutine[Any, Any, T]:
    """Return the copy; with `--verbose` it logs its outcome and the time it took."""
    return _log_outcome(copy, source_key, target_key) if _log.isEnabledFor(logging.DEBUG) else copy


def log_rows(results: Iterable[EntryResult], seconds: float) -> None:
    """Log each row; `seconds` is what the update of all of them took."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for result in results:
        updated = result.outcome in {Outcome.MIGRATED, Outcome.KEPT}
        fields = {"id": result.entry.id, "old_key": result.entry.key, "outcome": str(result.outcome)}
        fields |= {"batch_ms": f"{seconds * 1000:.1f}"} if updated else {"error": result.error}
        _log.debug("row updated" if updated else "row not updated", extra=fields)


async def _log_outcome(copy: Coroutine[Any, Any, T], source_key: str, target_key: str) -> T:
    started = time.monotonic()
    result = await copy
    fields = {"old_key": source_key, "new_key": target_key, "outcome": str(result.outcome)}
    _log.debug("object copied", extra={**fields, "ms": f"{(time.monotonic() - started) * 1000:.1f}"})
    return result
