"""An entry that kills the worker that touches it, and workers that are replaced until nothing is pending."""

from pathlib import Path

from support.entries.migration import Migration

POISON = "image/u7/me.png"
MOST_WORKERS = 20

KILL_ON_POISON = f"""
import os, signal
from rowferry_worker.copying import follow
from rowferry_queues.migrate import perform as migrate
copy_object = migrate.copy_object
def poisoned(s3, options, source_key, target_key):
    if source_key == {POISON!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return copy_object(s3, options, source_key, target_key)
migrate.copy_object = follow.copy_object = poisoned
"""


def work_in_spite_of_poison(migration: Migration, folder: Path, *, slots: int = 1) -> list[int]:
    """Replace each worker that ends, until no batch is INIT; return their exit statuses."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(KILL_ON_POISON)
    statuses: list[int] = []
    while "INIT" in migration.statuses():
        assert len(statuses) < MOST_WORKERS, "a poison loop"
        with migration.workers(1, "--until-empty", f"--max-batches={slots}", PYTHONPATH=str(hook)) as (worker,):
            statuses.append(worker.wait())
        migration.execute("delete from rowferry.worker")  # so that no claim waits for the heartbeat of a dead worker
    return statuses
