"""Copies between fake buckets: how a worker copies that knows this or that of its servers."""

from typing import Any, Literal

from rowferry.batch import Outcome
from rowferry.plan import OnConflict
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport, WriteOperation
from rowferry_worker.properties.settle import Properties
from rowferry_worker.properties.tags import Tagging
from support.s3.fake_buckets import FakeBuckets, stored

OLD, NEW = "image/a.png", "avatar/a.png"

Support = Literal["unknown", "probing", "supported", "ignored"]
"""What a worker knows of conditional writes."""


def options_of(method: CopyMethod, support: Support = "ignored", on_conflict: OnConflict = "fail") -> CopyOptions:
    """Return the options of a worker that knows this of the server's ordinary writes, and all about tags."""
    known = ConditionalWriteSupport("new")
    if support == "probing":
        assert known.begin_probe(method.operation)
    elif support != "unknown":
        known.note(method.operation, supported=support == "supported")
    tagging = Tagging()
    tagging._announced = dict.fromkeys((False, True), "yes")
    tagging._kept |= {"PutObject": True, "CopyObject": True}
    return CopyOptions(method, known, on_conflict, Properties(tagging=tagging))


def support_of(options: CopyOptions, operation: WriteOperation | None = None) -> Support:
    """Return what is known of an operation, the method's own unless told."""
    operation = operation or options.method.operation
    supported = options.support.supported(operation)
    if supported is None:
        return "unknown" if options.support.begin_probe(operation) else "probing"
    return "supported" if supported else "ignored"


def fake_with(body: bytes = b"legacy", existing: bytes | None = None, **more: Any) -> FakeBuckets:
    fake = FakeBuckets(legacy={OLD: stored(body)}, **more)
    if existing is not None:
        fake.production[NEW] = stored(existing)
    return fake


def end_of(result: CopyResult) -> tuple[Outcome, int]:
    """Return what became of a copy, and how many bytes were written."""
    return result.outcome, result.size_bytes


def copy_once(fake: FakeBuckets, options: CopyOptions) -> CopyResult:
    return fake.run(copy_object(fake.s3, options, OLD, NEW))
