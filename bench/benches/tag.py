"""One worker process without a flag, tagging at 70 ms of latency, against boto3 in ten processes and in threads."""

from collections.abc import Callable
from typing import Any

from bench.baselines import programs
from bench.environment import execute, fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, run_for
from bench.timing import run_script
from bench.watch import Watch, between
from rowferry.db.connection import connect
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.servers.postgres import EmbeddedPostgres

LATENCY_MS = 70
THREADS = 128
"""Of boto3: more of them do not pay, since Python's lock is their bound."""
PROCESSES = 10
MOST_PER_SECOND = 15_000
BUCKET = "legacy"
"""The one that the fake server has filled: it is the production bucket of the plan."""
ROWS = """
drop table if exists pictures;
create table pictures (id bigint primary key generated always as identity, path text not null, tenant text not null);
insert into pictures (path, tenant)
select 'image/' || lpad(i::text, 9, '0') || '.png', 'tenant-' || i %% 997 from generate_series(1, %(rows)s) as i;
analyze pictures;
truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure;
"""
COUNTS = "select sum(migrated)::int as done, sum(entry_count)::int as rows from rowferry.batch_queue"


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    seconds = record.pick(30.0, short=4.0, reduced=14.0)
    threaded = record.pick(6_000, short=300, reduced=3_000)
    one_by_one = record.pick(2_000, short=20, reduced=1_000)
    processes, threads = record.pick(PROCESSES, short=2), record.pick(THREADS, short=16)
    record.settings |= {"latency_ms": LATENCY_MS, "batch_size": BATCH_SIZE, "seconds": seconds}
    record.settings |= {"boto3_threads": threads, "processes": processes}
    record.settings |= {"objects_of_threads": threaded, "objects_of_processes": one_by_one}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {
            "rowferry": lambda: tag_by_rowferry(postgres, seconds),
            "boto3 in threads": lambda: tag_by_boto3(threaded, f"--threads={threads}"),
            "ten processes": lambda: tag_by_boto3(one_by_one, f"--processes={processes}"),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    rate, cpu = "objects_per_second", "cpu_ms_per_object"
    record.expect("objects tagged/s, one worker without a flag, 70 ms latency", record.median("rowferry", rate))
    record.compare("objects/s against ten processes of boto3", rate, "rowferry", "ten processes", at_least=20)
    threads = record.settings["boto3_threads"]
    record.compare(f"objects/s against boto3 in {threads} threads", rate, "rowferry", "boto3 in threads", at_least=3)
    record.expect(
        "CPU of the worker per object, two requests each", record.median("rowferry", cpu), at_most=0.2, unit=" ms"
    )
    record.compare("the same against boto3 in threads", cpu, "rowferry", "boto3 in threads")
    for name, figure in (("PostgreSQL", "postgresql_cpu_ms"), ("the fake S3 server", "fake_s3_cpu_ms_per_object")):
        record.expect(f"CPU of {name} per object", record.median("rowferry", figure), unit=" ms")


def tag_by_rowferry(postgres: EmbeddedPostgres, seconds: float) -> Figures:
    """Let one worker process tag for so long; the pace is that of the second half."""
    with fake_s3(LATENCY_MS) as server:
        make_rows(int(seconds * MOST_PER_SECOND))
        enqueue_rows(server.endpoint_url)
        watch = Watch(server, postgres_pid=postgres.pid)
        seen = run_for(seconds, watch, [Launch()], counts=COUNTS)
        refuse_failures()
        requests = server.read_stats()
    begin, end = between(seen.samples, seconds / 2, seconds)
    figures, objects = seen.figures(seconds / 2, seconds), max(end.objects - begin.objects, 1)
    database = end.postgres_cpu_seconds - begin.postgres_cpu_seconds
    return {
        "objects_per_second": figures["entries_per_second"],
        "cpu_ms_per_object": figures["cpu_ms_per_entry"],
        "cores_of_worker": figures["cores_of_worker"],
        "fake_s3_cpu_ms_per_object": figures["server_cpu_ms_per_entry"],
        "postgresql_cpu_ms": 1000 * database / objects,
        "requests_per_object": requests["requests"] / requests["objects"],
    }


def tag_by_boto3(objects: int, way: str) -> Figures:
    """Let boto3 tag the objects of as many rows."""
    make_rows(objects)
    with fake_s3(LATENCY_MS) as server:
        command = ["bench.baselines.tag_objects", f"--url={server.endpoint_url}", f"--bucket={BUCKET}"]
        seconds, cpu_seconds, _ = run_script([*command, f"--objects={objects}", way], programs.ACCOUNT)
        assert server.read_stats()["objects"] == objects
    return {"objects_per_second": objects / seconds, "cpu_ms_per_object": 1000 * cpu_seconds / objects}


def make_rows(rows: int) -> None:
    """Make the table anew, and empty the queue."""
    with connect("bench", autocommit=True) as connection:
        for statement in filter(str.strip, ROWS.split(";")):
            connection.execute(statement.encode(), {"rows": rows} if "%(" in statement else None)


def enqueue_rows(url: str) -> None:
    """Put all rows in the queue."""
    plan = parse_plan(describe_plan(url), "of the bench")
    with connect("bench", autocommit=True) as connection:
        enqueue(connection, plan, EnqueueRequest(find_queue("tag"), BATCH_SIZE))


def describe_plan(url: str) -> dict[str, Any]:
    return {
        "migration": {"name": "bench"},
        "production": {"bucket": BUCKET, "endpoint_url": url},
        "entries": [{"table": "pictures", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}],
        "queue": {"tag": {"set": {"tier": "cold", "tenant": {"column": "tenant"}}}},
    }


def refuse_failures() -> None:
    """Raise AssertionError where an object was not tagged."""
    failed = execute("select count(*) from rowferry.entry_failure")
    assert failed == [(0,)], f"{failed} objects were not tagged"
