"""OpenTelemetry, where it is switched on: one span a batch, with its verdict and outcomes."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from rowferry.batch import Attempt, Batch, EntryResult, Judgement, Outcome, Verdict
from rowferry.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

_log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Either of them switches tracing on; the exporter reads them and the other OTEL_* variables itself."""

_tracer: "Tracer | None" = None

Record = Callable[[Judgement, Sequence[EntryResult]], None]
"""Adds the batch's verdict and results to its span."""


def set_up_tracing(*, asked: bool) -> None:
    """Send spans to OTEL_EXPORTER_OTLP_ENDPOINT if that is set or `asked`.

    Raises UsageError when `asked` and the extra `otel` is not installed.
    """
    if not asked and not any(os.environ.get(name) for name in ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        reason = "Tracing is not installed; run: pip install 'rowferry[otel]'"
        if asked:
            raise UsageError(reason) from error
        _log.warning("no spans are sent", extra={"why": reason})
        return
    start_tracing(BatchSpanProcessor(OTLPSpanExporter()))


def start_tracing(processor: "SpanProcessor") -> None:
    """Give every span from now on to `processor`, which sends the last ones when the process ends."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    global _tracer  # noqa: PLW0603 - one tracer a process, as there is one log
    provider = TracerProvider(resource=Resource.create({"service.name": "rowferry-worker"}))
    provider.add_span_processor(processor)
    _tracer = provider.get_tracer("rowferry")


def trace_batch(
    batch: Batch, attempt: Attempt, worker_id: str, migration: str
) -> AbstractContextManager[Record | None]:
    """Hold a span open around a batch; it records an error that passes through. None: tracing is off."""
    if _tracer is None:
        return nullcontext()
    attributes = {
        "rowferry.batch.id": batch.id,
        "rowferry.attempt.id": attempt.id,
        "rowferry.attempt.number": attempt.number,
        "rowferry.worker.id": worker_id,
        "rowferry.migration": migration,
        "rowferry.queue": batch.queue_name,
    }
    return _hold_span(_tracer, f"batch {batch.queue_name}", attributes)


@contextmanager
def _hold_span(tracer: "Tracer", name: str, attributes: dict[str, Any]) -> Generator[Record]:
    with tracer.start_as_current_span(name, attributes=attributes) as span:
        yield partial(_record, span)


def _record(span: Any, judgement: Judgement, results: Sequence[EntryResult]) -> None:
    """Add verdict and outcomes to the span; it failed unless the batch is DONE."""
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

    span.set_attribute("rowferry.verdict", str(judgement.verdict))
    counts = Counter([result.outcome for result in results])
    for outcome in Outcome:
        span.set_attribute(f"rowferry.entries.{outcome}", counts[outcome])
    if judgement.verdict is not Verdict.DONE:
        span.set_status(Status(StatusCode.ERROR, judgement.error))
