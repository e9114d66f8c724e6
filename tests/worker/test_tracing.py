"""Spans of OpenTelemetry: one a batch, and none by default."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from rowferry.errors import UsageError
from rowferry_worker.daemon import run_worker
from rowferry_worker.monitoring import tracing
from rowferry_worker.options import Options
from support.entries.migration import Migration

SPANS = "rowferry_worker.monitoring.tracing._tracer"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Where the spans of this process end up; afterwards there are none again."""
    monkeypatch.setattr(SPANS, None)
    exporter = InMemorySpanExporter()
    tracing.start_tracing(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


@pytest.fixture
def two_batches(migration: Migration) -> Migration:
    """One batch that goes well and one with a row without an object."""
    migration.fill(10)
    migration.add_row(11, "image/nothing.png")
    migration.enqueue(batch_size=10)
    return migration


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("rowferry."): value for name, value in (span.attributes or {}).items()}


def test_a_batch_is_a_span_with_its_verdict_and_outcomes(
    two_batches: Migration, spans: InMemorySpanExporter, signals_untouched: None
) -> None:
    run_worker(Options(max_batches=1, until_empty=True))
    done, failed = sorted(spans.get_finished_spans(), key=lambda span: attributes(span)["batch.id"])
    found = attributes(done)
    assert (found["verdict"], found["entries.migrated"], found["entries.missing"]) == ("DONE", 10, 0)
    assert (found["migration"], found["queue"], found["attempt.number"]) == ("avatars", "migrate", 1)
    assert found["worker.id"] == two_batches.batches()[0]["worker_id"]
    assert done.status.status_code is StatusCode.UNSET
    assert (attributes(failed)["verdict"], failed.status.status_code) == ("ERROR", StatusCode.ERROR)
    assert "NoSuchKey" in (failed.status.description or "")


@pytest.fixture
def signals_untouched() -> Iterator[None]:
    """Give pytest its own handlers back after a worker ran in this process."""
    import signal

    with ExitStack() as until:
        for number in (signal.SIGTERM, signal.SIGINT):
            until.callback(signal.signal, number, signal.getsignal(number))
        yield


def test_tracing_is_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPANS, None)
    for name in tracing.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    tracing.set_up_tracing(asked=False)
    assert tracing._tracer is None


def test_an_endpoint_in_the_environment_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPANS, None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    tracing.set_up_tracing(asked=False)
    assert tracing._tracer is not None


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SPANS, None)
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(UsageError, match=r"pip install 'rowferry\[otel\]'"):
        tracing.set_up_tracing(asked=True)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with caplog.at_level(logging.WARNING):
        tracing.set_up_tracing(asked=False)
    assert "no spans are sent" in caplog.text
