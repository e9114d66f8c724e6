"""The curves of `make scale`: what one look has seen, which of them should stay flat, and whether they did."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields

MEGABYTE = 1024 * 1024
FLAT = 1.3
"""Of what should stay flat, the last third of the run may have so much more than the first."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at one time."""

    minutes: float
    claim_cpu_ms: float
    """Of a session of its own, which gives the batch back."""
    batch_cpu_ms: float
    """Of the whole of PostgreSQL, application and all, by the batches that were finished since the sample before."""
    entries_per_second: float
    wal_bytes_per_entry: float
    worker_memory_mb: float
    """Of the largest process, resident."""
    queue_mb: float
    queue_indexes_mb: float
    attempts_mb: float
    tally_mb: float
    entries_table_mb: float
    dead_queue_rows: float
    dead_entries_rows: float


GROWS = {"queue_mb", "queue_indexes_mb", "attempts_mb", "entries_table_mb"}
"""What grows with the work that was done: a row of the ledger a batch, an entry in the index of finished batches, new
versions of the entries' rows."""
SWINGS = {"dead_queue_rows", "dead_entries_rows", "tally_mb"}
"""What autovacuum lets rise and fall."""
LESS_IS_WORSE = {"entries_per_second"}


def judge(samples: Sequence[Sample]) -> dict[str, tuple[float, float, float]]:
    """Return the medians of the first and of the last third of each curve, and how much worse the last one is."""
    third = max(1, len(samples) // 3)
    found: dict[str, tuple[float, float, float]] = {}
    for name in [each.name for each in fields(Sample)][1:]:
        first, last = (
            statistics.median(getattr(s, name) for s in part) for part in (samples[:third], samples[-third:])
        )
        worse = (first, last) if name in LESS_IS_WORSE else (last, first)
        found[name] = (first, last, worse[0] / worse[1] if worse[1] else 1.0)
    return found


def tell(samples: Sequence[Sample]) -> list[str]:
    """Return a line for each curve."""
    lines: list[str] = []
    for name, (first, last, ratio) in judge(samples).items():
        kind = "grows with the work" if name in GROWS else "autovacuum's" if name in SWINGS else ""
        verdict = kind or ("flat" if ratio <= FLAT else "NOT FLAT")
        lines.append(f"{name:<22} first third {first:12,.2f}   last third {last:12,.2f}   {ratio:5.2f}x   {verdict}")
    return lines
