"""The same copies against a real S3 server, versitygw over a folder: what is left of it where the server works too."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from bench.baselines import programs
from bench.environment import read_postgres_version, run_measured, running_postgres
from bench.migration import enqueue_rows, fix_pace, make_rows, read_span, run_worker
from bench.record import Figures, Record
from bench.timing import run_script
from rowferry_lab.servers.fake_s3.uniform import name_key
from rowferry_lab.servers.s3_servers import S3Server, VersityServer

PROGRAM = Path(__file__).parent.parent.parent / ".tools" / "bin" / "versitygw"
BODY = b"\x89PNG" + bytes(range(256)) * 40
"""About 10 kB."""
IN_FLIGHT = 64
BATCH_SIZE = 100


def run(record: Record) -> None:
    """Measure all contestants in turn; nothing where there is no versitygw."""
    if not PROGRAM.is_file():
        record.absent["versitygw"] = "not built: `make test` does it where `go` is installed"
        return
    objects = record.pick(5_000, short=200)
    record.settings |= {"objects": objects, "body_bytes": len(BODY), "in_flight": IN_FLIGHT, "batch_size": BATCH_SIZE}
    with running_postgres(), VersityServer(PROGRAM) as server:
        record.versions |= {"postgresql": read_postgres_version(), "versitygw": read_version()}
        record.report("filling the legacy bucket")
        course = Course(server, objects)
        contestants: dict[str, Callable[[], Figures]] = {
            "rowferry": course.migrate,
            "boto3 in threads": course.copy_in_threads,
        }
        rclone = programs.find_rclone()
        if rclone:
            record.versions["rclone"] = programs.read_version(rclone)
            contestants["rclone"] = lambda: course.copy_by_rclone(rclone)
        else:
            record.absent["rclone"] = programs.MISSING
        record.interleave(contestants, repetitions=record.pick(3, short=1))
    rate = "entries_per_second"
    record.expect("entries/s, one worker, versitygw on the same machine", record.median("rowferry", rate))
    record.compare("entries/s against boto3 in threads, versitygw", rate, "rowferry", "boto3 in threads")
    record.compare("entries/s against rclone's copies/s, versitygw", rate, "rowferry", "rclone")


def read_version() -> str:
    """Return the version that was built, which its stamp tells; the program itself says nothing of use."""
    return next((stamp.name.removeprefix(".versitygw-v") for stamp in PROGRAM.parent.glob(".versitygw-*")), "unknown")


class Course:
    """A server with a legacy bucket, and an empty production bucket for each repetition."""

    def __init__(self, server: S3Server, objects: int) -> None:
        """Fill the legacy bucket."""
        self._server = server
        self._objects = objects
        self._names: Iterator[str] = (f"production-{number}" for number in count(1))
        self._account = {
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret_key,
            "AWS_REGION": "us-east-1",
        }
        self._s3: Any = boto3.client(
            "s3",
            endpoint_url=server.endpoint_url,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
            region_name="us-east-1",
            config=Config(max_pool_connections=16),
        )
        self._s3.create_bucket(Bucket="legacy")
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(self._put, range(1, objects + 1)))

    def _put(self, number: int) -> None:
        self._s3.put_object(Bucket="legacy", Key=name_key(number), Body=BODY, ContentType="image/png")

    def _open_bucket(self) -> str:
        name = next(self._names)
        self._s3.create_bucket(Bucket=name)
        return name

    def migrate(self) -> Figures:
        """Let one worker migrate everything."""
        make_rows(self._objects)
        bucket, url = self._open_bucket(), self._server.endpoint_url
        enqueue_rows(url, url, BATCH_SIZE, production_bucket=bucket)
        keys = {
            f"ROWFERRY_{side}_{name}": value
            for side in ("LEGACY", "PRODUCTION")
            for name, value in (
                ("ACCESS_KEY_ID", self._server.access_key),
                ("SECRET_ACCESS_KEY", self._server.secret_key),
            )
        }
        used = run_worker(*fix_pace(IN_FLIGHT), environment=keys)
        return self._count(read_span(self._objects), used.cpu_seconds, used.memory_mb)

    def copy_in_threads(self) -> Figures:
        """Let boto3 copy everything in threads; no row is touched."""
        command = ["bench.baselines.boto3_threads", f"--url={self._server.endpoint_url}", f"--objects={self._objects}"]
        command += [f"--threads={IN_FLIGHT}", f"--bucket={self._open_bucket()}"]
        return self._count(*run_script(command, self._account))

    def copy_by_rclone(self, program: Path) -> Figures:
        """Let rclone copy everything; no row is touched."""
        url, bucket = self._server.endpoint_url, self._open_bucket()
        used = run_measured(programs.rclone_command(program, url, IN_FLIGHT, bucket=bucket), self._account)
        return self._count(used.wall_seconds, used.cpu_seconds, used.memory_mb)

    def _count(self, seconds: float, cpu_seconds: float, memory_mb: float) -> Figures:
        return {
            "entries_per_second": self._objects / seconds,
            "cpu_ms_per_entry": 1000 * cpu_seconds / self._objects,
            "memory_mb": memory_mb,
        }
