"""What the readings of a drive say: the pace, how many requests were refused, CPU, latency. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from rowferry_cli.estimate.drive import Drive, MeterReading
from rowferry_cli.estimate.dry_run import Operation
from rowferry_cli.estimate.intervals import Interval, estimate_mean

WINDOWS = 8
"""The steady part is cut into so many windows, whose rates give the interval."""
STEADY_SECONDS = 8.0
STEADY_WITHIN = 0.05
"""A pace is steady when its last seconds differ by no more than this share from those before."""
RISING = 1.2
"""The pace is still rising when the last third is so much faster than the one before."""
SETTLES_AFTER = 0.4
"""The part of a measurement that is left out: the number in flight has to be found first."""
LEAST_OBJECTS = 20


@dataclass(frozen=True, slots=True)
class Measurement:
    """One process's pace, as measured."""

    seconds: float
    objects: int
    """Looked at, or copied."""
    entries_per_second: Interval
    """Of the steady part."""
    bytes_per_second: float
    cpu_cores: float
    """Used by this process, on the average."""
    in_flight: int
    """The limit of objects in flight at the end."""
    most_in_flight: int
    """The largest limit that was possible."""
    requests_per_second: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    """Those that were not refused."""
    refused: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    """The share that was throttled, from the beginning on, where any was."""
    first_latency_seconds: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    last_latency_seconds: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    """Medians of the first and of the last requests."""
    is_rising: bool = False
    """Whether the pace still rose when the time was over."""
    copied: bool = False
    """Whether objects were written; else only read."""
    is_interrupted: bool = False
    held_back: frozenset[Operation] = frozenset()
    """Operations that the worker's machinery kept below what a server refuses, in the end."""


def read_measurement(
    drive: Drive, most_in_flight: int, *, copied: bool, held_back: frozenset[Operation] = frozenset()
) -> Measurement | None:
    """Return what a drive has shown; None where it was too short to show anything."""
    if len(drive.readings) < 2 or drive.readings[-1].ended == drive.readings[0].ended:
        return None
    readings = trim(drive.readings)
    start, end = choose_steady(readings)
    seconds = max(end.at - start.at, 0.001)
    requests, refused = end.requests - start.requests, end.refused - start.refused
    meter = drive.meter
    return Measurement(
        readings[-1].at - readings[0].at,
        readings[-1].ended - readings[0].ended,
        _measure_rate(readings, start, end),
        (end.bytes - start.bytes) / seconds,
        (end.cpu_seconds - start.cpu_seconds) / seconds,
        end.limit,
        most_in_flight,
        {operation: (count - refused[operation]) / seconds for operation, count in requests.items()},
        {operation: count / meter.requests[operation] for operation, count in meter.refused.items()},
        {operation: median(values) for operation, values in meter.first_seconds.items()},
        {operation: median(values) for operation, values in meter.last_seconds.items()},
        _is_rising(readings),
        copied,
        drive.is_interrupted,
        held_back,
    )


def trim(readings: Sequence[MeterReading]) -> Sequence[MeterReading]:
    """Return the readings up to the one that saw the last object end: then nothing was left to do."""
    last = readings[-1].ended
    until = next(index for index, reading in enumerate(readings) if reading.ended == last)
    return readings[: max(until + 1, 2)]


def choose_steady(readings: Sequence[MeterReading]) -> tuple[MeterReading, MeterReading]:
    """Return the first and the last reading of the part that counts; all of it where the rest saw few objects."""
    begin, end = readings[0], readings[-1]
    settled = begin.at + SETTLES_AFTER * (end.at - begin.at)
    start = next(reading for reading in readings if reading.at >= settled)
    return (start, end) if end.ended - start.ended >= LEAST_OBJECTS else (begin, end)


def is_steady(readings: Sequence[MeterReading]) -> bool:
    """Return whether the pace of the last seconds is that of the seconds before."""
    end = readings[-1]
    rates: list[float] = []
    for first, last in ((2, 1), (1, 0)):
        earlier = _find(readings, end.at - first * STEADY_SECONDS / 2)
        later = _find(readings, end.at - last * STEADY_SECONDS / 2)
        if earlier is None or later is None or later.at <= earlier.at:
            return False
        rates.append((later.ended - earlier.ended) / (later.at - earlier.at))
    return rates[0] > 0 and abs(rates[1] - rates[0]) <= STEADY_WITHIN * rates[0]


def _measure_rate(readings: Sequence[MeterReading], start: MeterReading, end: MeterReading) -> Interval:
    """Return the rate of the steady part, with the interval of the mean of its windows."""
    width = (end.at - start.at) / WINDOWS
    marks = [_find(readings, start.at + width * number) or start for number in range(WINDOWS + 1)]
    pairs = [(one, two) for one, two in pairwise(marks) if two.at > one.at]
    rate = (end.ended - start.ended) / max(end.at - start.at, 0.001)
    spread = estimate_mean([(two.ended - one.ended) / (two.at - one.at) for one, two in pairs] or [rate])
    return Interval(rate, min(rate, spread.low), max(rate, spread.high))


def _is_rising(readings: Sequence[MeterReading]) -> bool:
    begin, end = readings[0], readings[-1]
    third = (end.at - begin.at) / 3
    one, two = _find(readings, begin.at + third), _find(readings, begin.at + 2 * third)
    if one is None or two is None or two.ended == one.ended:
        return False
    before = (two.ended - one.ended) / max(two.at - one.at, 0.001)
    return (end.ended - two.ended) / max(end.at - two.at, 0.001) > RISING * before


def _find(readings: Sequence[MeterReading], at: float) -> MeterReading | None:
    """Return the last reading not after a moment; None where there was none yet."""
    found = None
    for reading in readings:
        if reading.at > at + 0.001:
            break
        found = reading
    return found
