"""What `make scale` looks at while workers run: one sample of everything that should stay flat."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench.environment import execute
from bench.run_curves import MEGABYTE, Sample
from bench.server_cpu import list_processes, read_backend_cpu, read_server_cpu
from bench.watch import read_sizes

CLAIMS = 20
CLAIM = "select id from rowferry.claim_batch(array['migrate'])"
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
        memory = [read_sizes(child)[0] for pid in pids for child in list_processes(pid)]
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


def write(samples: Sequence[Sample], settings: dict[str, Any], folder: Path) -> None:
    """Write the samples into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"settings": settings, "samples": [asdict(sample) for sample in samples]}
    (folder / "scale.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
