"""An auditor that polls pg_locks never sees more batches claimed than `max_claimed`, whoever is killed."""

import os
import random
from pathlib import Path

from support.processes.clock import LoadClock
from support.processes.forked import HOOK, ForkedProcess
from support.queue.lines import Lines

MOST = {"tag": 3, "verify": 1}
BATCHES = 150
WORKERS = 8
WORK = """
import random
from contextlib import closing, suppress
import psycopg
from support.queue.lines import finish
from rowferry.db.connection import connect
from rowferry.errors import DatabaseUnavailable
from rowferry_worker.batch.claim import claim_batch

while True:
    with suppress(psycopg.OperationalError, DatabaseUnavailable), closing(connect("worker")) as connection:
        while True:
            batch = claim_batch(connection, ["tag", "verify"])
            if batch is None:
                connection.rollback()
                continue
            connection.execute("select pg_sleep(%s)", (random.random() / 50,))
            finish(connection, batch)
"""


def start(folder: Path) -> ForkedProcess:
    """Start a process that works until it is killed: what it runs first has no end."""
    (folder / HOOK).write_text(WORK)
    log = folder / "log"
    return ForkedProcess([], {**os.environ, "PYTHONPATH": str(folder)}, folder, log, log)


def test_no_auditor_sees_more_than_max_claimed_while_sessions_are_killed(lines: Lines, tmp_path: Path) -> None:
    lines.register("one", {queue: {"max_claimed": most} for queue, most in MOST.items()})
    for queue in MOST:
        lines.add(("one", queue), BATCHES)
    limits = {lines.rows("one")[queue]["id"]: most for queue, most in MOST.items()}
    seen = dict.fromkeys(limits, 0)
    workers = [start(tmp_path) for _ in range(WORKERS)]
    choose, killed, clock = random.Random(7), 0, LoadClock()
    try:
        while lines.session.execute("select 1 from rowferry.batch_queue where status = 'INIT' limit 1").fetchone():
            assert clock.look() < 100
            for queue_id, taken in lines.count_places().items():
                assert taken <= limits[queue_id]
                seen[queue_id] = max(seen[queue_id], taken)
            if killed < 10 and choose.random() < 0.05:
                killed += 1
                victim = choose.randrange(WORKERS)
                workers[victim].kill()
                workers[victim].wait()
                workers[victim] = start(tmp_path)
            elif choose.random() < 0.02:
                lines.session.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where application_name like '%worker%' and pid <> pg_backend_pid() limit 1"
                )
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert killed > 3
    assert seen == limits, "the proof that the limits were reached, and that the auditor sees it"
    assert lines.session.execute("select sum(migrated) as done from rowferry.batch_queue").fetchall() == [
        {"done": 2 * BATCHES}
    ]
