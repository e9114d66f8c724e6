"""Whole runs of rowferry and of the baselines over the same objects: from the start of a process to its end.

A run of one object beside them tells what each takes to start and to end, and so its pace in between.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from operator import methodcaller

from bench import baselines
from bench.environment import Usage, run_measured
from bench.migration import BATCH_SIZE, check_rows, enqueue_rows, make_rows
from bench.record import Figures, Record
from bench.server_cpu import read_server_cpu
from bench.servers import BenchServer, Objects, Start, trust

WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--until-empty", "--log-format=json")
OURS, THREADED = "rowferry", "boto3 in threads"
THREADED_PART = 5
"""boto3 gets a part of the objects: so much slower it is."""


@dataclass(frozen=True, slots=True)
class Course:
    """Servers of one kind, and what is copied there."""

    server: str
    start: Start
    objects: Objects
    in_flight: int
    """Of rclone and s5cmd, with which they are fastest here."""
    threads: int
    """Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
    is_stream: bool = False
    """Whether the bytes go from one server to another; otherwise a server copies them by itself."""
    batch_size: int = BATCH_SIZE
    """Of rowferry: a batch should take some seconds at the most."""

    @contextmanager
    def open(self) -> Iterator[tuple[BenchServer, BenchServer]]:
        """Yield the legacy and the production server, fresh ones, which are one where it copies by itself."""
        with self.start(self.objects) as legacy:
            if not self.is_stream:
                yield legacy, legacy
                return
            with self.start(replace(self.objects, count=1)) as production:
                yield legacy, production

    def migrate(self, postgres_pid: int) -> Figures:
        """Let `rowferry worker`, as it is typed, migrate a row for each object."""
        with self.open() as (legacy, production):
            make_rows(self.objects.count)
            enqueue_rows(legacy.endpoint_url, production.endpoint_url, self.batch_size)
            before = read_server_cpu(postgres_pid)
            used = run_measured(WORKER, trust("AWS_CA_BUNDLE", legacy, production))
            database = read_server_cpu(postgres_pid) - before
            check_rows()
            figures = self._describe(production, used)
        return {**figures, "postgresql_cpu_ms_per_object": 1000 * database / self.objects.count}

    def copy_by(self, name: str) -> Figures:
        """Let a baseline copy each object; no row is touched."""
        with self.open() as (legacy, production):
            urls = legacy.endpoint_url, production.endpoint_url
            command = self.compose(name, *urls)
            assert command is not None
            trusted = trust(baselines.TRUST[baselines.BASELINES[name][0]], legacy, production)
            return self._describe(production, run_measured(command, baselines.name_remotes(*urls) | trusted))

    def compose(self, name: str, legacy_url: str = "", production_url: str = "") -> list[str] | None:
        """Return the command of a baseline between two servers; None where its program is not here."""
        return baselines.compose(
            name,
            objects=self.objects.count,
            threads=self.threads,
            in_flight=self.in_flight,
            remote="production" if self.is_stream else "legacy",
            legacy=legacy_url,
            production=production_url,
        )

    def _describe(self, production: BenchServer, used: Usage) -> Figures:
        """Return paces, CPU and memory; AssertionError unless the server has all objects."""
        count, seen = self.objects.count, production.read_stats()["objects"]
        assert seen == count, f"{seen} objects were written where {count} were expected"
        return {
            "objects_per_second": count / used.wall_seconds,
            "megabytes_per_second": count * self.objects.body_bytes / 1e6 / used.wall_seconds,
            "cpu_ms_per_object": 1000 * used.cpu_seconds / count,
            "memory_mb": used.memory_mb,
        }


def list_contestants(
    record: Record, course: Course, rivals: Iterable[str], postgres_pid: int
) -> dict[str, Callable[[], Figures]]:
    """Return rowferry and those of the rivals that are here; the others are noted as absent."""
    found = {OURS: with_pace(course, lambda course: course.migrate(postgres_pid))}
    for name in rivals:
        own = course
        if name == THREADED:
            own = replace(course, objects=replace(course.objects, count=course.objects.count // THREADED_PART))
        if own.compose(name) is None:
            record.absent[name] = baselines.MISSING
        else:
            found[name] = with_pace(own, methodcaller("copy_by", name))
    return found


def with_pace(course: Course, measure: Callable[[Course], Figures]) -> Callable[[], Figures]:
    """Return what measures a course, and tells its pace without what the run of a single object takes."""
    one = replace(course, objects=replace(course.objects, count=1))
    start_seconds = cache(lambda: 1 / measure(one)["objects_per_second"])

    def run() -> Figures:
        start, figures, more = start_seconds(), measure(course), course.objects.count - 1
        running = (more + 1) / figures["objects_per_second"] - start
        return {**figures, "start_seconds": start, "objects_per_second_running": more / max(running, 1e-3)}

    return run
