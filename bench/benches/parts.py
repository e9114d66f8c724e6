"""One large object by parts that processes share, over a slow link; and later passes that send what changed."""

import http.client
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bench.baselines import programs
from bench.benches.link import CONNECTION, STREAMS, TOTAL, stream_by_rclone
from bench.benches.link import migrate as migrate_in_one_batch
from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.migration import check_rows, make_rows
from bench.record import Figures, Record
from bench.timed import WORKER
from rowferry.db.connection import connect
from rowferry.plan import Entries, LegacySide, MigrationSettings, Plan, ProductionSide
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_queues.parts.spec import PARTS

LATENCY_MS = 70
LINK = (f"--link-connection-bytes-per-second={CONNECTION}", f"--link-total-bytes-per-second={TOTAL}")
LONGEST_SECONDS = 900
PART_BYTES = 5 << 20
CHUNK_BYTES = 64 << 10
CHANGED = 0.01
"""The share of the bytes that a later pass finds changed."""
KEY = "image/000000001.png"
LONGEST_ATTEMPT = (
    "select max(extract(epoch from finished_at - started_at))::float as seconds from rowferry.batch_attempt"
)
FORGET = """
truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure;
truncate rowferry.copied_object, rowferry.upload cascade;
"""


def run(record: Record) -> None:
    """Measure a first pass against one batch and rclone, and later passes against a full copy."""
    size = record.pick(1 << 30, short=64 << 20, reduced=1 << 30)
    record.settings |= {"body_bytes": size, "latency_ms": LATENCY_MS}
    record.settings |= {"bytes_per_second_of_a_connection": int(CONNECTION), "bytes_per_second_in_all": int(TOTAL)}
    record.settings |= {"rclone_streams": STREAMS, "changed_share": CHANGED}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        contestants = {
            "one batch": partial(copy_in_one_batch, size),
            "parts, 1 process": partial(copy_by_parts, size, 1),
            "parts, 4 processes": partial(copy_by_parts, size, 4),
        }
        rclone = programs.find_rclone()
        if rclone:
            record.versions["rclone"] = programs.read_version(rclone)
            command = programs.rclone_between_command(rclone, STREAMS, f"--multi-thread-streams={STREAMS}")
            contestants["rclone"] = partial(
                stream_by_rclone, [*command, "--multi-thread-cutoff=16M"], size, latency_ms=LATENCY_MS
            )
        else:
            record.absent["rclone"] = programs.MISSING
        repetitions = record.pick(3, short=1, reduced=1)
        record.interleave(contestants, repetitions=repetitions)
        with LaterPasses(size) as passes:
            record.interleave(passes.contestants(), repetitions=repetitions)
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    by_four = "parts, 4 processes"
    record.compare("pace of four processes against one batch", "share_of_the_link", by_four, "one batch")
    record.compare("the same against rclone", "share_of_the_link", by_four, "rclone")
    record.expect("longest transaction, parts", record.median(by_four, "longest_transaction_seconds"), unit=" s")
    record.expect("the same, one batch", record.median("one batch", "longest_transaction_seconds"), unit=" s")
    bound = None if record.short else 0.02
    record.expect("bytes moved for one run of 1 %", record.median("one run", "moved_share"), at_most=bound)
    for name in ("ten runs", "scattered"):
        record.expect(f"bytes moved, {name}", record.median(name, "moved_share"))
        record.expect(f"the least with parts of 5 MiB, {name}", record.median(name, "touched_share"))
    record.compare("time of one run against a full copy", "seconds", "one run", "full copy")


def enqueue_parts(legacy: FakeS3Server, production: FakeS3Server) -> None:
    """Put the one row in the queue `parts`; its row follows by `migrate`."""
    entries = Entries("pictures", "id", "path", "image/", "avatar/")
    sides = LegacySide("legacy", legacy.endpoint_url), ProductionSide("production", production.endpoint_url)
    queues = {"parts": {"least_bytes": PART_BYTES, "replace": "own", "then": ["migrate"]}}
    plan = Plan(MigrationSettings("bench"), *sides, (entries,), queue=queues)
    with connect("bench", autocommit=True) as connection:
        enqueue(connection, plan, EnqueueRequest(PARTS, 100))


def work(processes: int) -> None:
    """Let so many worker processes do all that is in the queue."""
    quiet = subprocess.DEVNULL
    command = [*WORKER, "--until-empty", "--processes=1", "--queue=parts", "--queue=migrate"]
    workers = [subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) for _ in range(processes)]
    for worker in workers:
        assert worker.wait(LONGEST_SECONDS) == 0, "a worker failed"


def read_longest_transaction() -> float:
    """Return the seconds of the longest attempt, whose transaction was open as long."""
    with connect("bench", autocommit=True) as connection:
        row = connection.execute(LONGEST_ATTEMPT.encode()).fetchone()
    assert row is not None
    return float(row["seconds"])


def copy_in_one_batch(size: int) -> Figures:
    """Let the queue `migrate` copy the object, as any other."""
    make_rows(1)
    figures = migrate_in_one_batch(size, latency_ms=LATENCY_MS)
    return {**figures, "longest_transaction_seconds": read_longest_transaction()}


def copy_by_parts(size: int, processes: int) -> Figures:
    """Let so many processes share the object's parts."""
    make_rows(1)
    forget()
    legacy = fake_s3(LATENCY_MS, *LINK, "--objects=1", body_bytes=size)
    with legacy, fake_s3(LATENCY_MS, *LINK, body_bytes=size) as production:
        enqueue_parts(legacy, production)
        began = time.monotonic()
        work(processes)
        seconds, stats = time.monotonic() - began, production.read_stats()
        check_rows()
    return {
        "share_of_the_link": size / seconds / TOTAL,
        "seconds": seconds,
        "parts": stats["accepted"].get("UploadPart", 0),
        "longest_transaction_seconds": read_longest_transaction(),
    }


def forget() -> None:
    """Forget all batches, uploads and copies."""
    with connect("bench", autocommit=True) as connection:
        for statement in filter(str.strip, FORGET.split(";")):
            connection.execute(statement.encode())


class LaterPasses:
    """A legacy object beside the worker, and its copy behind a slow link; each pass changes some of its bytes."""

    def __init__(self, size: int) -> None:
        """Start no server yet."""
        self._random = random.Random(1)
        self._body = bytearray().join(self._random.randbytes(1 << 20) for _ in range(size >> 20))
        self._legacy = FakeS3Server()
        self._production = FakeS3Server(f"--latency-seconds={LATENCY_MS / 1000}", *LINK)

    def __enter__(self) -> "LaterPasses":
        """Start the servers, and make the first copy."""
        self._legacy.__enter__()
        self._production.__enter__()
        send(self._legacy, "/legacy")
        send(self._production, "/production")
        forget()
        self._pass_over([])
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the servers."""
        self._production.__exit__(None, None, None)
        self._legacy.__exit__(None, None, None)

    def contestants(self) -> dict[str, Callable[[], Figures]]:
        """Return each kind of change."""
        size = len(self._body)
        changed = int(size * CHANGED)
        scattered = max(1, changed // CHUNK_BYTES)
        return {
            "full copy": self._copy_all,
            "one run": lambda: self._pass_over([(size // 3, changed)]),
            "ten runs": lambda: self._pass_over([(size * n // 10, changed // 10) for n in range(10)]),
            "scattered": lambda: self._pass_over(
                [(self._random.randrange(size - CHUNK_BYTES), CHUNK_BYTES) for _ in range(scattered)]
            ),
        }

    def _copy_all(self) -> Figures:
        """Copy the object as if for the first time."""
        forget()
        send(self._production, f"/production/{KEY.replace('image', 'avatar')}", method="DELETE")
        return self._pass_over([])

    def _pass_over(self, runs: list[tuple[int, int]]) -> Figures:
        """Change these runs of bytes (first, size), and bring the copy up to date."""
        touched: set[int] = set()
        for first, size in runs:
            self._body[first : first + size] = self._random.randbytes(size)
            touched |= {*range(first // PART_BYTES, (first + size - 1) // PART_BYTES + 1)}
        send(self._legacy, f"/legacy/{KEY}", bytes(self._body))
        make_rows(1)
        enqueue_parts(self._legacy, self._production)
        before, began = self._production.read_stats(), time.monotonic()
        work(2)
        seconds, after = time.monotonic() - began, self._production.read_stats()
        check_rows()
        return {
            "seconds": seconds,
            "moved_share": (after["bytes_accepted"] - before["bytes_accepted"]) / len(self._body),
            "touched_share": len(touched) * PART_BYTES / len(self._body) if runs else 1.0,
        }


def send(server: FakeS3Server, target: str, body: bytes = b"", *, method: str = "PUT") -> None:
    """Write or delete an object, or make a bucket."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.endpoint_url).port, timeout=100)
    connection.request(method, target, body)
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status < 300, f"the server refuses {method} {target}: {response.status}"


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the seconds of each contestant."""
    summary = result["summary"]
    names = list(summary)[::-1]
    axis.barh(names, [summary[name]["seconds"]["median"] for name in names], color="#56a64b")
    axis.set_xlim(left=0)
    axis.set_xlabel(f"seconds for {result['settings']['body_bytes'] / 2**30:.2g} GiB")
