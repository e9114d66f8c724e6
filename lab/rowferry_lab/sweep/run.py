"""The runs of a sweep: for each, make the data anew, enqueue, let one worker migrate, and check the result."""

import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import timedelta
from itertools import count, islice
from random import Random
from urllib.parse import parse_qsl

from rowferry.db.connection import Connection, fetch_one
from rowferry.errors import RowferryError
from rowferry.http import event_loop
from rowferry.interrupts import hold_interrupts
from rowferry.keys import map_text
from rowferry.plan import Side
from rowferry.reports.progress import read_counts
from rowferry.s3.client import open_object_client
from rowferry.s3.operations import get_object, get_object_tagging
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.retry import send_many
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.queries import statement
from rowferry_lab.servers.server_process import ServerProcess
from rowferry_lab.simulated.environment import Environment
from rowferry_lab.simulated.images import SampleImage, draw_images
from rowferry_lab.simulated.prepare import prepare
from rowferry_lab.sweep.grid import AUTO, SEED, Result, Setting
from rowferry_queues.migrate.spec import MIGRATE

LONGEST_RUN = timedelta(hours=1)
IN_FLIGHT = 64
"""Requests of the check at a time."""


def run_once(
    environment: Environment, connection: Connection, rows: int, latency: timedelta, setting: Setting
) -> Result:
    """Migrate once and return what it gave. Raises RowferryError when the worker fails or takes far too long."""
    plan, server = environment.plan, environment.s3_server
    (entries,) = plan.entries
    prepare(connection, plan, rows, seed=SEED, clean_production=True)
    images = [*islice(draw_images(entries, count(1), Random(SEED)), rows)]  # noqa: S311 - as `prepare` has drawn them
    ends = {map_text(image.key, entries).text if image.side == "legacy" else image.key: image for image in images}
    legacy = _list(environment, plan.legacy.bucket)
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
    environment: Environment, connection: Connection, ends: Mapping[str, SampleImage], legacy: Mapping[str, object]
) -> tuple[str, ...]:
    """Return one sentence for each thing that is not as it must be after a run.

    `ends` are the images by the key where each must be now, `legacy` is the legacy bucket as it was.
    """
    plan = environment.plan
    keys = {row["path"] for row in connection.execute(statement("demo_keys"))}
    counts, legacy_now = read_counts(connection, plan.name, MIGRATE.name), _list(environment, plan.legacy.bucket)
    wrong = {
        "rows have a wrong key or are missing": keys ^ ends.keys(),
        "production objects are missing or not equal": _find_unequal(plan.production, ends),
        "unexpected production objects": _list(environment, plan.production.bucket).keys() - ends,
        "legacy objects were written, deleted or added": {key for key, _ in legacy_now.items() ^ legacy.items()},
    }
    problems = [f"{len(found):,} {words}: {', '.join(sorted(found)[:3])}" for words, found in wrong.items() if found]
    if not counts.balances or counts.waiting or not counts.entries == counts.migrated == len(legacy):
        problems.append(f"{counts.migrated:,} of {len(legacy):,} entries migrated, {counts.waiting:,} waiting")
    return tuple(problems)


def _find_unequal(side: Side, ends: Mapping[str, SampleImage]) -> set[str]:
    """Return the keys whose object has not the bytes, headers and tags of its image."""
    requests = [ask("production", key) for key in ends for ask in (get_object, get_object_tagging)]
    with closing(open_object_client(side, max_in_flight=IN_FLIGHT)) as client:
        answers = iter(event_loop.run(send_many(client.send, requests, at_once=IN_FLIGHT)))
    return {key for key, image in ends.items() if not _is_image(image, next(answers), next(answers))}


def _is_image(image: SampleImage, found: Response | Exception, tagging: Response | Exception) -> bool:
    if not isinstance(found, Response) or not isinstance(tagging, Response):
        return False
    expected = {name.lower(): value for name, value in image.headers}
    tags = dict(parse_qsl(expected.pop("x-amz-tagging", "")))
    has_headers = all(found.headers.get(name) == value for name, value in expected.items())
    return found.body == image.body and has_headers and dict(read_tags(tagging.body)) == tags


def _list(environment: Environment, bucket: str) -> dict[str, object]:
    """Return when each object of a bucket was written, by its key."""
    with closing(environment.open_s3()) as s3:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {one["Key"]: one["LastModified"] for page in pages for one in page.get("Contents", [])}
