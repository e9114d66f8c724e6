"""OpenTelemetry, for those who ask for it: one span a batch, with its verdict and outcomes. Off, it costs nothing."""

import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowferry.batch import Attempt, Batch, Verdict, count_outcomes
from rowferry.errors import UsageError
from rowferry_worker.batch.run import Processed

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

_log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Either of them switches tracing on; the exporter reads these, and the other OTEL_* variables, by itself."""

_tracer: "Tracer | None" = None

Tell = Callable[[Processed], None]
"""Takes the end of the batch into its span."""


def set_up_tracing(*, asked: bool) -> None:
    """Send spans to where OTEL_EXPORTER_OTLP_ENDPOINT says, if it says so or was `asked`.

    Raises UsageError when it was asked and the extra `otel` is not installed.
    """
    if not asked and not any(os.environ.get(name) for name in ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        words = "Tracing is not installed; run: pip install 'rowferry[otel]'"
        if asked:
            raise UsageError(words) from error
        _log.warning("no spans are sent", extra={"why": words})
        return
    start_tracing(BatchSpanProcessor(OTLPSpanExporter()))


def start_tracing(processor: "SpanProcessor") -> None:
    """Give every span from now on to `processor`; what it holds is sent when the process ends."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    global _tracer  # noqa: PLW0603 - one tracer a process, as there is one log
    provider = TracerProvider(resource=Resource.create({"service.name": "rowferry-worker"}))
    provider.add_span_processor(processor)
    _tracer = provider.get_tracer("rowferry")


@contextmanager
def trace_batch(batch: Batch, attempt: Attempt, worker_id: str, migration: str) -> Generator[Tell]:
    """Hold a span open around a batch; an error that passes through is recorded in it."""
    if _tracer is None:
        yield _tell_nobody
        return
    attributes = {
        "rowferry.batch.id": batch.id,
        "rowferry.attempt.id": attempt.id,
        "rowferry.attempt.number": attempt.number,
        "rowferry.worker.id": worker_id,
        "rowferry.migration": migration,
        "rowferry.queue": batch.queue_name,
    }
    with _tracer.start_as_current_span(f"batch {batch.queue_name}", attributes=attributes) as span:
        yield lambda processed: _describe(span, processed)


def _describe(span: Any, processed: Processed) -> None:
    """Put verdict and outcomes into the span; it failed unless the batch is DONE."""
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

    judgement = processed.judgement
    span.set_attribute("rowferry.verdict", str(judgement.verdict))
    for outcome, count in count_outcomes(processed.results).items():
        span.set_attribute(f"rowferry.entries.{outcome}", count)
    if judgement.verdict is not Verdict.DONE:
        span.set_status(Status(StatusCode.ERROR, judgement.error))


def _tell_nobody(_processed: Processed) -> None:
    pass
