"""The runs of a sweep: for each, make the data anew, enqueue, let one worker migrate, and check the result."""

import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import timedelta

from rowferry.db.connection import Connection, fetch_one
from rowferry.errors import RowferryError
from rowferry.interrupts import hold_interrupts
from rowferry.keys import map_text
from rowferry.reports.progress import read_counts
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.queries import statement
from rowferry_lab.servers.server_process import ServerProcess
from rowferry_lab.simulated.environment import Environment
from rowferry_lab.simulated.prepare import prepare
from rowferry_lab.sweep.grid import AUTO, SEED, Result, Setting
from rowferry_queues.migrate.spec import MIGRATE

LONGEST_RUN = timedelta(hours=1)


def run_once(
    environment: Environment, connection: Connection, rows: int, latency: timedelta, setting: Setting
) -> Result:
    """Migrate once and return what it gave. Raises RowferryError when the worker fails or takes far too long."""
    plan, server = environment.plan, environment.s3_server
    (entries,) = plan.entries
    prepare(connection, plan, rows, seed=SEED, clean_production=True)
    legacy, production = _list(environment, plan.legacy.bucket), _list(environment, plan.production.bucket)
    ends = {key: etag for key, (etag, _) in production.items()}
    ends |= {map_text(key, entries).text: etag for key, (etag, _) in legacy.items()}
    enqueue(connection, plan, EnqueueRequest(MIGRATE, setting.batch_size))
    server.set_latency(latency)
    _work(environment, setting)
    server.set_latency(timedelta(0))
    span = fetch_one(connection, statement("sweep_duration"), {"migration": plan.name})["seconds"] or 0.0
    return Result(setting, len(legacy), span, find_problems(environment, connection, ends, legacy))


def _work(environment: Environment, setting: Setting) -> None:
    """Run one worker of one process until the queue is empty.

    It is gone however this ends, and however this process dies. The environment is temporary, so it is just killed.
    """
    fixed = [f"--parallel={setting.parallel}", f"--min-parallel={setting.parallel}"]
    command = [sys.executable, "-m", "rowferry_cli", "worker", "--until-empty", "--processes", "1"]
    command += fixed if setting.parallel != AUTO else []
    with ExitStack() as until:
        with hold_interrupts():
            process = ServerProcess(command, folder=environment.folder, death_signal=signal.SIGKILL)
            until.callback(process.stop, signal.SIGKILL)
        status = process.wait(LONGEST_RUN)
    if status != 0:
        ended = f"was not done within {LONGEST_RUN}" if status is None else f"ended with exit status {status}"
        raise RowferryError(f"A worker with {setting} {ended}: {process.read_last_words() or 'it said nothing'}")


def find_problems(
    environment: Environment, connection: Connection, ends: Mapping[str, str], legacy: Mapping[str, object]
) -> tuple[str, ...]:
    """Return one sentence for each thing that is not as it must be after a run.

    `ends` are the ETags of the images by the key where each must be now, `legacy` is the legacy bucket as it was.
    """
    plan = environment.plan
    keys = {row["path"] for row in connection.execute(statement("demo_keys"))}
    counts, legacy_now = read_counts(connection, plan.name, MIGRATE.name), _list(environment, plan.legacy.bucket)
    found = {key: etag for key, (etag, _) in _list(environment, plan.production.bucket).items()}
    wrong = {
        "rows have a wrong key or are missing": keys ^ ends.keys(),
        "production objects are missing or not equal": {key for key, _ in ends.items() - found.items()},
        "unexpected production objects": found.keys() - ends,
        "legacy objects were written, deleted or added": {key for key, _ in legacy_now.items() ^ legacy.items()},
    }
    problems = [f"{len(keys):,} {words}: {', '.join(sorted(keys)[:3])}" for words, keys in wrong.items() if keys]
    if not counts.balances or counts.waiting or not counts.entries == counts.migrated == len(legacy):
        problems.append(f"{counts.migrated:,} of {len(legacy):,} entries migrated, {counts.waiting:,} waiting")
    return tuple(problems)


def _list(environment: Environment, bucket: str) -> dict[str, tuple[str, object]]:
    """Return the ETag of each object of a bucket, the MD5 of its bytes, and when it was written, by its key."""
    with closing(environment.open_s3()) as s3:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        listed = [one for page in pages for one in page.get("Contents", [])]
        return {one["Key"]: (one["ETag"], one["LastModified"]) for one in listed}
