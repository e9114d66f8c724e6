"""Looks at a sample of objects and measures the pace, with clients, limits and scheduler as a worker has them."""

import logging
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectError, ObjectNotFound, SideFault, UsageError
from rowferry.http import event_loop
from rowferry.plan import Plan, Side, SideName
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry_cli.estimate.drive import Drive, RequestMeter
from rowferry_cli.estimate.readings import Measurement, is_steady, read_measurement
from rowferry_cli.estimate.sample import ObjectSample
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists, refuse
from rowferry_worker.copying.copy import CopyResult, copy_object
from rowferry_worker.copying.stream_copy import limit_part
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring.heartbeat import ClusterState
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.objects.own_copies import name_bucket
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.scheduling.scheduler import CopyScheduler

REQUEST_DEADLINE = timedelta(seconds=30)
LOOK_PART = 0.5
"""With --copy, the part of the time that the sample may take before objects are copied."""
DENIED_AFTER = 20
"""Looks that were all refused: more would be."""

OnProgress = Callable[[str], None]
Keys = Sequence[tuple[str, str]]
"""Legacy and production keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much is measured."""

    within: timedelta
    sample: int
    """Objects that are looked at, at least; without --copy, looks go on until the pace is steady."""
    parallel: int
    """Objects in flight at most."""
    copy: bool
    objects: float = math.inf
    """Those of the whole migration."""
    workers: int = 0
    """Live workers, with which the plan's limits are shared."""
    pace_is_known: bool = False
    """Whether looks end with the sample: the queue tells the pace."""
    in_folders: frozenset[int] = frozenset()
    """Positions of keys whose rows name a folder."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen and measured."""

    sample: ObjectSample
    measurement: Measurement | None
    condition_is_known: bool
    outcomes: Mapping[str, int]
    """Of the objects that were to be copied, `unfinished` for those that the end came before; empty without --copy."""


def measure_plan(plan: Plan, keys: Keys, limits: Limits, on_progress: OnProgress) -> Measured:
    """Look at the objects of the keys, and with `copy` copy them; otherwise write nothing.

    Raises UsageError when a bucket cannot be used, or no legacy object may be read. Ctrl-C ends the measuring, not the
    report.
    """
    sample = ObjectSample(plan, keys, limits.in_folders)
    with _open_migration(plan, limits) as migration:
        meter = RequestMeter(CopyScheduler(limits.parallel), migration.send)
        send = _connect(migration, meter).send
        on_progress(f"reading {plan.legacy.bucket}")
        looks = Drive(meter, lambda: sample.received_bytes)
        looks_end = limits.copy or limits.pace_is_known
        looks.drive(
            lambda number: sample.look(send, number),
            min(limits.sample, len(keys)) if looks_end else None,
            limits.within * LOOK_PART if limits.copy else limits.within,
            lambda drive: _is_enough(drive, sample, min(limits.sample, len(keys))),
        )
        if not looks.is_interrupted or sample.errors:
            _refuse_unreadable(plan.legacy, sample, looks)
        measurement = _read(plan, looks, limits, copied=False)
        outcomes: dict[str, int] = {}
        if limits.copy and not looks.is_interrupted:
            on_progress(f"copying to {plan.production.bucket}")
            measurement = _copy(migration, keys, limits, outcomes) or measurement
        honours = migration.copy_options("fail").support.supported(sample.method.operation)
    logging.disable(logging.WARNING)  # what a worker warns of was said at the first look
    try:
        event_loop.run(sample.count(limits.objects, honours_condition=honours is not False))
    finally:
        logging.disable(logging.NOTSET)
    return Measured(sample, measurement, honours is not None, outcomes)


def _connect(migration: MigrationContext, meter: RequestMeter) -> ObjectRequests:
    """Return how requests are sent, as BatchContext.object_requests does for a batch; the meter sees each try."""
    reserve, record = migration.pace_requests(meter.scheduler)
    return ObjectRequests(meter.send, reserve=reserve, record=record)


def _copy(migration: MigrationContext, keys: Keys, limits: Limits, outcomes: dict[str, int]) -> Measurement | None:
    """Copy objects as a worker does with `--on-conflict fail`, each once; return the pace."""
    meter = RequestMeter(CopyScheduler(limits.parallel), migration.send)
    requests = _connect(migration, meter)
    large_objects = LargeObjects(room=meter.scheduler.part_room)
    options, written = migration.copy_options("fail", large_objects=large_objects), 0

    async def copy(number: int) -> CopyResult:
        nonlocal written
        outcome = "unfinished"
        try:
            result = await copy_object(requests, options, *keys[number])
            outcome, written = str(result.outcome), written + result.size_bytes
            return result
        except ObjectNotFound:
            outcome = str(Outcome.MISSING)
            raise
        except ObjectError:
            outcome = str(Outcome.FAILED)
            raise
        finally:
            outcomes[outcome] = outcomes.get(outcome, 0) + 1

    drive = Drive(meter, lambda: written)
    drive.drive(copy, len(keys), limits.within * (1 - LOOK_PART), lambda drive: drive.has_side_fault)
    return _read(migration.plan, drive, limits, copied=True)


def _read(plan: Plan, drive: Drive, limits: Limits, *, copied: bool) -> Measurement | None:
    """Return what a drive has shown, and which operations a server held back in the end."""
    rates = drive.meter.scheduler.request_rates
    held_back = frozenset(
        operation
        for operation in tuple(drive.meter.requests)
        if f"{name_bucket(plan.legacy if operation[0] == 'legacy' else plan.production)} {operation[1]}" in rates
    )
    return read_measurement(drive, limits.parallel, copied=copied, held_back=held_back)


def _is_enough(drive: Drive, sample: ObjectSample, wanted: int) -> bool:
    if drive.has_side_fault or (not sample.runs and len(sample.errors) >= DENIED_AFTER):
        return True
    return len(sample.runs) + len(sample.errors) >= wanted and is_steady(drive.readings)


def _refuse_unreadable(side: Side, sample: ObjectSample, looks: Drive) -> None:
    """Raise UsageError where no sampled object could be looked at."""
    if sample.runs:
        return
    if not sample.errors:
        seconds = looks.readings[-1].at - looks.readings[0].at
        remedy = "see that both servers respond, or give more time with --for"
        raise UsageError(f"No object could be looked at within {seconds:.0f} s: {remedy}.")
    error = next(iter(sample.errors.values()))
    if isinstance(error, AccessDenied | SideFault):
        finding = refuse(side, error, "read", "s3:GetObject and s3:ListBucket")
        raise UsageError(f"{finding.what[0].upper()}{finding.what[1:]}; {finding.remedy}.".replace("; .", "."))
    raise UsageError(f"None of {len(sample.errors)} legacy objects could be copied: {str(error).rstrip('.')}.")


@contextmanager
def _open_migration(plan: Plan, limits: Limits) -> Generator[MigrationContext]:
    """Yield the migration with a client a side. Raises UsageError when a bucket cannot be used."""
    clients: dict[SideName, ObjectClient] = {}
    migration = None
    try:
        for side in (plan.legacy, plan.production):
            clients[side.name] = _open_client(side, plan, limits.parallel)
            problem = next(
                (one for one in check_bucket_exists(clients[side.name], side) if one.level == "problem"), None
            )
            if problem is not None:
                words = f"{problem.what}; {problem.remedy}" if problem.remedy else problem.what
                raise UsageError(f"{words[0].upper()}{words[1:]}.")
        migration = MigrationContext(plan, clients, ClusterState(size=limits.workers + 1))
        yield migration
    finally:
        if migration is not None:
            migration.close()
        else:
            for client in clients.values():
                client.close()


def _open_client(side: Side, plan: Plan, parallel: int) -> ObjectClient:
    try:
        return open_object_client(
            side,
            max_in_flight=parallel,
            deadline=REQUEST_DEADLINE,
            max_body_bytes=limit_part(plan.migration.multipart_threshold_bytes),
        )
    except ObjectError as error:
        raise UsageError(f"The {side.name} bucket {side.bucket} cannot be used: {str(error).rstrip('.')}.") from error
