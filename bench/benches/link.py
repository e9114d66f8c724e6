"""One object of 1 GiB over a link with 2 MB/s a connection and 40 MB/s in all; and the same with a killed worker."""

import subprocess
import time
from functools import partial
from typing import Any

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, run_measured, running_postgres
from bench.migration import check_rows, enqueue_rows, make_rows
from bench.record import Figures, Record
from bench.timed import WORKER
from rowferry_lab.servers.s3_servers import FakeS3Server

CONNECTION, TOTAL = 2e6, 40e6
"""Bytes a second."""
LATENCY_MS = 20
KILLED_AT = 0.9
"""The share of the bytes that has come by then."""
STREAMS = 16
LONGEST_SECONDS = 900


def run(record: Record) -> None:
    """Measure the worker, rclone, and a worker that is killed and replaced."""
    size = record.pick(1 << 30, short=128 << 20, reduced=512 << 20)
    record.settings |= {"body_bytes": size, "bytes_per_second_of_a_connection": int(CONNECTION)}
    record.settings |= {"bytes_per_second_in_all": int(TOTAL), "latency_ms": LATENCY_MS, "rclone_streams": STREAMS}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        contestants = {"rowferry": partial(migrate, size)}
        rclone = programs.find_rclone()
        if rclone:
            record.versions["rclone"] = programs.read_version(rclone)
            command = programs.rclone_between_command(rclone, STREAMS, f"--multi-thread-streams={STREAMS}")
            contestants["rclone"] = partial(stream_by_rclone, [*command, "--multi-thread-cutoff=16M"], size)
        else:
            record.absent["rclone"] = programs.MISSING
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=1))
        killed = {"rowferry, killed": partial(migrate, size, killed=True)}
        record.interleave(killed, repetitions=record.pick(3, short=1, reduced=1))
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    bound = None if record.short or record.reduced else 0.85
    record.expect("share of the link", record.median("rowferry", "share_of_the_link"), at_least=bound)
    record.compare("the same against rclone with 16 streams", "share_of_the_link", "rowferry", "rclone")
    again = max(record.values("rowferry, killed", "parts_again"))
    record.expect("parts sent again after a kill", again, at_most=2)
    record.expect("share of the link, killed", record.median("rowferry, killed", "share_of_the_link"))
    idle = record.median("rowferry, killed", "seconds_until_it_went_on")
    record.expect("seconds from the kill to the next part", idle, unit=" s")


def servers(size: int, latency_ms: float = LATENCY_MS) -> tuple[FakeS3Server, FakeS3Server]:
    """Return the legacy server, which has the link, and the production server, which has one as fast; not started."""
    link = (f"--link-connection-bytes-per-second={CONNECTION}", f"--link-total-bytes-per-second={TOTAL}")
    legacy = fake_s3(latency_ms, *link, "--objects=1", body_bytes=size)
    return legacy, fake_s3(latency_ms, *link, body_bytes=size)


def migrate(size: int, *, killed: bool = False, latency_ms: float = LATENCY_MS) -> Figures:
    """Let one worker stream the object; if told to, kill it when most has come, and start another at once."""
    make_rows(1)
    legacy, production = servers(size, latency_ms)
    with legacy, production:
        enqueue_rows(legacy.endpoint_url, production.endpoint_url, 100)
        began = time.monotonic()
        process, went_on = start(), 0.0
        if killed:
            wait_for(production, "bytes_received", KILLED_AT * size)
            process.kill()
            process.wait()
            whole, stopped = production.read_stats()["bytes_accepted"], time.monotonic()
            process = start()
            wait_for(production, "bytes_accepted", whole + 1)
            went_on = time.monotonic() - stopped
        assert process.wait(LONGEST_SECONDS) == 0, "the worker failed"
        seconds = time.monotonic() - began
        stats = production.read_stats()
        check_rows()
    parts = stats["accepted"].get("UploadPart", 0)
    part_bytes = stats["bytes_accepted"] / max(parts, 1)
    return {
        "share_of_the_link": size / seconds / TOTAL,
        "seconds": seconds,
        "parts": parts,
        "parts_again": (stats["bytes_accepted"] - size) / part_bytes,
        "seconds_until_it_went_on": went_on,
    }


def start() -> subprocess.Popen[bytes]:
    """Start a worker."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*WORKER, "--until-empty", "--processes=1"], stdin=quiet, stdout=quiet, stderr=quiet)


def wait_for(server: FakeS3Server, count: str, number: float) -> None:
    """Return once a count of the server is so large. Raises AssertionError after LONGEST_SECONDS."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while server.read_stats()[count] < number:
        assert time.monotonic() < deadline, "the object does not come"
        time.sleep(0.1)


def stream_by_rclone(command: list[str], size: int, latency_ms: float = LATENCY_MS) -> Figures:
    """Let rclone stream the object."""
    legacy, production = servers(size, latency_ms)
    with legacy, production:
        used = run_measured(command, programs.rclone_remotes(legacy.endpoint_url, production.endpoint_url))
        assert production.read_stats()["objects"] == 1
    return {"share_of_the_link": size / used.wall_seconds / TOTAL, "seconds": used.wall_seconds}


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the seconds of each contestant beside those that the link needs."""
    summary = result["summary"]
    names = list(summary)[::-1]
    axis.barh(
        names,
        [summary[name]["seconds"]["median"] for name in names],
        color=["#8e8e8e" if name == "rclone" else "#56a64b" for name in names],
    )
    axis.axvline(result["settings"]["body_bytes"] / TOTAL, color="#8e8e8e", linestyle="--")
    axis.set_xlim(left=0)
    axis.set_xlabel(f"seconds for {result['settings']['body_bytes'] / 2**30:.2g} GiB (dashed: the link)")
