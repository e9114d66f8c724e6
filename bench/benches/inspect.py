"""Compressed objects counted at 70 ms of latency: one worker process against curl, downloads to disk, and obstore."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.baselines import programs
from bench.environment import Usage, execute, fake_s3, read_postgres_version, run_measured, running_postgres
from bench.migration import read_seconds, run_worker
from bench.record import Figures, Record
from bench.server_cpu import read_server_cpu
from bench.timed import BATCH_SIZE
from bench.timing import run_script
from rowferry.db.connection import connect
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import FakeS3Server

LATENCY_MS = 70
LINES = 122
"""Of an object: 14 kB of content."""
AT_ONCE = 100
"""curls of the shell's ways."""
IN_FLIGHT = (128, 256, 512)
"""Of obstore, of which the fastest counts."""
BUCKET = "legacy"
ROWS = """
drop table if exists pictures, object_facts;
create table pictures (
    id bigint primary key generated always as identity, path text not null, byte_size bigint, digest text, lines integer
);
create table object_facts (object_key text primary key, byte_size bigint, digest text, lines integer);
insert into pictures (path) select 'image/' || lpad(i::text, 9, '0') || '.png' from generate_series(1, %(rows)s) as i;
vacuum analyze pictures;
truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure;
"""
COLUMNS = {"size": "byte_size", "sha256": "digest", "lines": "lines"}
PLACES: dict[str, dict[str, Any]] = {"side table": {"table": "object_facts", "key": "object_key"}, "own columns": {}}
COUNT = {
    "side table": "select count(*), sum(lines) from object_facts",
    "own columns": "select count(lines), sum(lines) from pictures",
}
LIST = f"seq -f '{{url}}/{BUCKET}/image/%09g.png' {{objects}}"
SUM = "awk '{{ n += $1 }} END {{ print n }}'"
PIPE = f"{LIST} | xargs -P {{at_once}} -n {{each}} sh -c 'curl -sf \"$@\" | zcat | wc -l' sh | {SUM}"
DISK = (
    f"cd {{folder}} && {LIST} | xargs -P {{at_once}} -n {{each}} curl -sf --remote-name-all"
    " && find . -name '*.png' -print0 | xargs -0 -P 2 -n 1000 zcat | wc -l"
)
SERIAL = f'{LIST} | while read -r url; do curl -sf "$url" | zcat | wc -l; done | {SUM}'
"""The ways of a shell; each curl keeps its connection for all its objects, but for the last way."""


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    objects = record.pick(100_000, short=300)
    slower = record.pick(100_000, short=200)
    serial = record.pick(100, short=5, reduced=50)
    record.settings |= {"latency_ms": LATENCY_MS, "batch_size": BATCH_SIZE, "lines": LINES, "objects": objects}
    record.settings |= {"objects_of_curl": slower, "objects_one_by_one": serial}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {
            f"rowferry, {place}": partial(inspect_by_rowferry, postgres, objects, place) for place in PLACES
        }
        for in_flight in record.pick(IN_FLIGHT, short=IN_FLIGHT[:1], reduced=IN_FLIGHT[1:]):
            contestants[f"obstore, {in_flight}"] = partial(inspect_by_obstore, objects, in_flight)
        contestants |= {
            "curl, piped": partial(count_by_shell, PIPE, slower),
            "curl, to disk": partial(count_by_shell, DISK, slower),
            "curl, one by one": partial(count_by_shell, SERIAL, serial),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=1))
    record.notes.append(f"one by one without kept connections: {serial} objects, whose rate stands for all")
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets; of obstore, the fastest counts."""
    rate, cpu, ours = "objects_per_second", "cpu_ms_per_object", "rowferry, side table"
    rivals = sorted({run["contestant"] for run in record.repetitions if run["contestant"].startswith("obstore")})
    obstore = max(rivals, key=lambda each: record.median(each, rate))
    record.expect("objects inspected/s, one worker without a flag, 70 ms latency", record.median(ours, rate))
    record.compare("objects/s against 100 downloads to disk, then counting", rate, ours, "curl, to disk", at_least=3)
    record.compare("objects/s against xargs -P100, curl, zcat, wc", rate, ours, "curl, piped", at_least=2)
    record.compare(f"objects/s against {obstore}, which writes no rows", rate, ours, obstore, at_least=0.9)
    record.compare(f"CPU per object against {obstore}", cpu, ours, obstore, at_most=1)
    record.compare("objects/s against one curl after the other", rate, ours, "curl, one by one")
    record.expect("CPU of the worker per object", record.median(ours, cpu), unit=" ms")
    record.expect("CPU of PostgreSQL per object", record.median(ours, "postgresql_cpu_ms"), unit=" ms")
    record.expect("objects/s into the rows' own columns", record.median("rowferry, own columns", rate))


def serve() -> FakeS3Server:
    """Return the server, to be started."""
    return fake_s3(LATENCY_MS, f"--body-lines={LINES}")


def inspect_by_rowferry(postgres: EmbeddedPostgres, objects: int, place: str) -> Figures:
    """Let one worker process inspect all; its time is that from the first claim to the last verdict."""
    with serve() as server:
        make_rows(objects)
        enqueue_rows(server.endpoint_url, place)
        database = read_server_cpu(postgres.pid)
        used = run_worker()
        database = read_server_cpu(postgres.pid) - database
        asked = server.read_stats()
    assert execute(COUNT[place]) == [(objects, objects * LINES)]
    figures = measure(objects, read_seconds(objects), used.cpu_seconds)
    return {
        **figures,
        "postgresql_cpu_ms": 1000 * database / objects,
        "fake_s3_cpu_ms_per_object": 1000 * asked["cpu_seconds"] / objects,
        "memory_mb": used.memory_mb,
    }


def inspect_by_obstore(objects: int, in_flight: int) -> Figures:
    """Let obstore read, inflate, hash and count; no row is written."""
    with serve() as server:
        command = ["bench.baselines.obstore_inspect", f"--url={server.endpoint_url}", f"--bucket={BUCKET}"]
        command += [f"--objects={objects}", f"--in-flight={in_flight}", f"--lines={LINES}"]
        seconds, cpu_seconds, memory_mb = run_script(command, programs.ACCOUNT)
    return {**measure(objects, seconds, cpu_seconds), "memory_mb": memory_mb}


def count_by_shell(script: str, objects: int) -> Figures:
    """Let curl and zcat count the lines, each of the curls on a kept connection of its own but one by one."""
    with serve() as server, tempfile.TemporaryDirectory() as folder:
        each = -(-objects // AT_ONCE)
        words = script.format(url=server.endpoint_url, objects=objects, at_once=AT_ONCE, each=each, folder=Path(folder))
        used: Usage = run_measured(["sh", "-c", words])
    assert int(used.said) == objects * LINES, used.said
    return measure(objects, used.wall_seconds, used.cpu_seconds)


def measure(objects: int, seconds: float, cpu_seconds: float) -> dict[str, float]:
    """Return rate and CPU."""
    return {"objects_per_second": objects / seconds, "cpu_ms_per_object": 1000 * cpu_seconds / objects}


def make_rows(rows: int) -> None:
    """Make the tables anew, and empty the queue."""
    with connect("bench", autocommit=True) as connection:
        for statement in filter(str.strip, ROWS.split(";")):
            connection.execute(statement.encode(), {"rows": rows} if "%(" in statement else None)


def enqueue_rows(url: str, place: str) -> None:
    """Put all rows in the queue."""
    plan = {
        "migration": {"name": "bench"},
        "production": {"bucket": BUCKET, "endpoint_url": url},
        "entries": [{"table": "pictures", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}],
        "queue": {"inspect": {"columns": COLUMNS, **PLACES[place]}},
    }
    with connect("bench", autocommit=True) as connection:
        enqueue(connection, parse_plan(plan, "of the bench"), EnqueueRequest(find_queue("inspect"), BATCH_SIZE))
