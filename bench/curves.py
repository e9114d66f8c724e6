"""The curves of `make scale`: what one look sees, which of them should stay flat, and whether they did."""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import psycopg

from bench.environment import execute
from bench.server_cpu import list_processes, read_backend_cpu, read_server_cpu

MEGABYTE = 1024 * 1024
FLAT = 1.3
"""Of what should stay flat, the last third of the run may have so much more than the first."""
CLAIMS = 20
CLAIM = "select id from rowferry.claim_batch(array[1], array['migrate'])"
DONE = """
select count(*), coalesce(sum(migrated + kept), 0), coalesce(sum(bytes), 0)
from rowferry.batch_queue where status = 'DONE'
"""
SIZES = """
select
    sum(pg_table_size(c.oid)) filter (where c.relname = 'batch_queue'),
    sum(pg_indexes_size(c.oid)) filter (where c.relname = 'batch_queue'),
    sum(pg_total_relation_size(c.oid)) filter (where c.relname = 'batch_attempt'),
    sum(pg_total_relation_size(c.oid)) filter (where c.relname = 'batch_tally'),
    sum(pg_total_relation_size(c.oid)) filter (where c.relname = 'pictures')
from pg_class as c where c.relkind = 'r'
"""
DEAD = """
select
    coalesce(sum(n_dead_tup) filter (where schemaname = 'rowferry'), 0),
    coalesce(sum(n_dead_tup) filter (where schemaname <> 'rowferry'), 0)
from pg_stat_user_tables
"""
WAL = "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"


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


@dataclass(slots=True)
class Sampler:
    """Takes samples; `workers` is asked for the pids that are there now."""

    postgres_pid: int
    samples: list[Sample] = field(default_factory=list[Sample])
    _began: float = field(default_factory=time.monotonic)
    _before: tuple[float, int, int, float, int] | None = None

    def done(self) -> int:
        """Return how many entries were migrated or kept."""
        ((_, entries, _),) = execute(DONE)
        return int(entries)

    def take(self, pids: Sequence[int]) -> Sample | None:
        """Look at everything once. None the first time: paces need two looks."""
        now, cpu = time.monotonic(), read_server_cpu(self.postgres_pid)
        ((batches, entries, _),), ((wal,),) = execute(DONE), execute(WAL)
        before, self._before = self._before, (now, int(batches), int(entries), cpu, int(wal))
        if before is None:
            return None
        seconds, used, written = now - before[0], cpu - before[3], float(wal) - before[4]
        batch_count, entry_count = max(1, batches - before[1]), max(1, entries - before[2])
        sizes = [float(size or 0) / MEGABYTE for size in execute(SIZES)[0]]
        memory = [read_memory_mb(child) for pid in pids for child in list_processes(pid)]
        sample = Sample(
            (now - self._began) / 60,
            1000 * measure_claims(),
            1000 * used / batch_count,
            entry_count / seconds,
            written / entry_count,
            max(memory, default=0.0),
            *sizes,
            *map(float, execute(DEAD)[0]),
        )
        self.samples.append(sample)
        # What this look has cost PostgreSQL is not the batches'.
        looked = self._before
        self._before = (*looked[:3], looked[3] + read_server_cpu(self.postgres_pid) - cpu, looked[4])
        return sample


def measure_claims() -> float:
    """Return the CPU seconds of one claim, of a session that has claimed before."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        for _ in range(3):
            connection.execute(CLAIM).fetchall()
            connection.commit()
        began = read_backend_cpu(connection.info.backend_pid)
        for _ in range(CLAIMS):
            connection.execute(CLAIM).fetchall()
            connection.commit()
        return (read_backend_cpu(connection.info.backend_pid) - began) / CLAIMS


def read_memory_mb(pid: int) -> float:
    """Return the resident size of a process; 0 once it is gone, or where there is no /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE
