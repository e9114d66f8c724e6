"""`--verbose`: logs each object and each row."""

import logging
import time
from collections.abc import Iterable, Mapping

from rowferry.batch import EntryResult, Outcome
from rowferry.logs import current_fields, log_fields
from rowferry_worker.objects.journey import Journey

_log = logging.getLogger(__name__)


def watch_journey(journey: Journey, source_key: str, target_key: str) -> Journey:
    """Return the journey; where asked for, it tells when its object has arrived and how long it took."""
    if not _log.isEnabledFor(logging.DEBUG):
        return journey
    return _told(journey, source_key, target_key, current_fields())


def log_rows(results: Iterable[EntryResult], seconds: float) -> None:
    """Log each row; `seconds` is what the update of all of them took."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for result in results:
        updated = result.outcome in {Outcome.MIGRATED, Outcome.KEPT}
        fields = {"id": result.entry.id, "old_key": result.entry.key, "outcome": str(result.outcome)}
        fields |= {"batch_ms": f"{seconds * 1000:.1f}"} if updated else {"error": result.error}
        _log.debug("row updated" if updated else "row not updated", extra=fields)


def _told(journey: Journey, source_key: str, target_key: str, batch_fields: Mapping[str, object]) -> Journey:
    """Travel, and tell; another thread travels, so that it is told here whose batch it is."""
    began = time.monotonic()
    copied = yield from journey
    fields = {"old_key": source_key, "new_key": target_key, "outcome": str(copied.outcome)}
    with log_fields(**batch_fields):
        _log.debug("object copied", extra={**fields, "ms": f"{(time.monotonic() - began) * 1000:.1f}"})
    return copied
