"""Runs over so many objects from the start of a process to its end: of other programs, and of `rowferry worker`.

The figures of each run come twice: with the start, and without where that can be told apart.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from bench.environment import Usage, run_measured
from bench.migration import check_rows
from bench.record import INCLUDED, Figures
from bench.servers import BenchServer
from bench.timed import WORKER, Launch
from bench.watch import Watch

EVERY_SECONDS = 0.05
RATE, CPU = "entries_per_second", "cpu_ms_per_entry"


def measure_program(
    command: Sequence[str], environment: Mapping[str, str], server: BenchServer, objects: int, in_flight: int
) -> Figures:
    """Let a program copy so many objects to a server, its start and its listing included; no row is touched.

    Its pace without the start is that from the time on when as many objects are done as it has in flight: these were
    begun together. Where that is more than half of the objects, only the whole run is told. Its CPU is always that of
    the whole run.
    """
    watch = Watch(server, every_seconds=EVERY_SECONDS)
    try:
        used = run_measured(command, environment, lambda pid: watch.start([pid]))
    finally:
        watch.stop()
    check_objects(server, objects)
    first = next((sample for sample in watch.samples if sample.objects >= in_flight), None)
    if 2 * in_flight > objects or first is None or first.objects == objects:
        return compose_whole(objects, used)
    seconds = (used.wall_seconds - first.at) * objects / (objects - first.objects)
    return compose(objects, used, seconds, used.cpu_seconds)


def measure_script(
    command: Sequence[str], environment: Mapping[str, str], server: BenchServer, objects: int
) -> Figures:
    """Run a baseline in Python, a module and its arguments, which tells the time and CPU without start and imports."""
    used = run_measured([sys.executable, "-m", *command], environment)
    check_objects(server, objects)
    said = json.loads(used.said)
    return compose(objects, used, said["seconds"], said["cpu_seconds"])


def measure_worker(launch: Launch, entries: int) -> Figures:
    """Let a worker empty the queue; return its pace and its CPU an entry, its start and its end included."""
    command = [*WORKER, "--until-empty", *launch.arguments]
    used = run_measured(command, launch.environment)
    check_rows()
    return {f"{RATE}{INCLUDED}": entries / used.wall_seconds, f"{CPU}{INCLUDED}": 1000 * used.cpu_seconds / entries}


def compose(objects: int, used: Usage, seconds: float, cpu_seconds: float) -> Figures:
    """Return rate and CPU with the start and without, and memory."""
    return {RATE: objects / seconds, CPU: 1000 * cpu_seconds / objects, **compose_whole(objects, used)}


def compose_whole(objects: int, used: Usage) -> Figures:
    """Return rate and CPU with the start, and memory."""
    return {
        f"{RATE}{INCLUDED}": objects / used.wall_seconds,
        f"{CPU}{INCLUDED}": 1000 * used.cpu_seconds / objects,
        "memory_mb": used.memory_mb,
    }


def check_objects(server: BenchServer, objects: int) -> None:
    """Raise AssertionError unless a server has so many objects in `production`."""
    seen = server.read_stats()["objects"]
    assert seen == objects, f"{seen} objects were written where {objects} were expected"
