"""CPU of an entry over TLS, against the same over plain HTTP."""

import tempfile
from functools import partial
from pathlib import Path

from bench.certificate import write_certificate
from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.migration import enqueue_rows, make_rows
from bench.record import Figures, Record
from bench.timed import Launch, run_for
from bench.watch import Watch
from rowferry_lab.servers.server_process import find_free_port

LATENCY_MS = 70
IN_FLIGHT = 512
"""Fixed, so that the CPU of both is that of as many connections."""
BATCH_SIZE = 500
MOST_PER_SECOND = 26_000
SIZES = {"copied": None, "20 kB streamed": 20_000}


def run(record: Record) -> None:
    """Measure both in turn."""
    seconds = record.pick(24.0, short=4.0, reduced=9.0)
    record.settings |= {"latency_ms": LATENCY_MS, "in_flight": IN_FLIGHT, "batch_size": BATCH_SIZE, "seconds": seconds}
    with running_postgres(), tempfile.TemporaryDirectory() as folder:
        record.versions["postgresql"] = read_postgres_version()
        contestants = {
            f"{how}, {scheme}": partial(measure, Path(folder), size, seconds, tls=scheme == "TLS")
            for how, size in SIZES.items()
            for scheme in ("TLS", "plain")
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    for how in SIZES:
        names = f"{how}, TLS", f"{how}, plain"
        record.compare(f"CPU an entry {how}, TLS against plain", "cpu_ms_per_entry", *names, at_most=1.4)
        record.expect(f"CPU an entry {how}, TLS", record.median(names[0], "cpu_ms_per_entry"), unit=" ms")
        record.compare(f"entries/s {how}, TLS against plain", "entries_per_second", *names)


def measure(folder: Path, streamed_bytes: int | None, seconds: float, *, tls: bool) -> Figures:
    """Let one worker copy within one server, or stream to another."""
    certificate, key = write_certificate(folder)
    ports = find_free_port(), find_free_port()
    options = [(f"--tls-port={port}", f"--certificate={certificate}", f"--key={key}") for port in ports]
    body_bytes = streamed_bytes or 20_000
    with (
        fake_s3(LATENCY_MS, *options[0], body_bytes=body_bytes) as production,
        fake_s3(LATENCY_MS, *options[1], body_bytes=body_bytes) as other,
    ):
        legacy = other if streamed_bytes else production
        urls = [server.endpoint_url for server in (legacy, production)]
        if tls:
            urls = [f"https://127.0.0.1:{port}" for port in (ports[1] if streamed_bytes else ports[0], ports[0])]
        make_rows(int(seconds * MOST_PER_SECOND))
        enqueue_rows(urls[0], urls[1], BATCH_SIZE)
        worker = Launch.fixed(IN_FLIGHT).with_environment(AWS_CA_BUNDLE=str(certificate))
        watch = Watch(production, other if streamed_bytes else None)
        return run_for(seconds, watch, [worker]).figures(seconds / 3, seconds)
