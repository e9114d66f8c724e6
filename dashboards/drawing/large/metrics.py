"""The metrics of the large scene, as a block of Prometheus: two hours of what its hosts and its exporter would say.

The hosts' are computed from what `hosts.py` says of each. The exporter's are one reading of the scene's own
database, held for as long as the time shown.
"""

import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from drawing.large.hosts import HOSTS, MINUTE, Host
from rowferry_exporter.metrics import describe
from rowferry_exporter.reader import Reader
from rowferry_worker.monitoring import metrics

STEP = 30
BEFORE, AFTER = 125 * MINUTE, 20 * MINUTE
"""Seconds of the block before and after now: it is still looked at for minutes after it was written."""
LOST_AT = -12 * MINUTE
QUEUES = {"migrate": 0.81, "verify": 0.19}
"""Of the running migration: each one's share of the entries."""
RUNNING = "avatars"
BUSY_SLOTS = {"claim": 0.01, "read": 0.05, "perform": 2.6, "update": 0.24, "commit": 0.06, "held": 0.2}
"""Of a host's slots, how many are in each step."""
FIRING = {
    ("RowferryNoProgress", "critical", "covers-stalled"): -70 * MINUTE,
    ("RowferryErrorShare", "warning", RUNNING): -50 * MINUTE,
}
"""Since when each alert fires, by its name, severity and migration."""

Labels = dict[str, str]
Curve = Callable[[float], float | None]
"""A value by the seconds after now; None: there is none."""


def write_block(folder: Path, now: float) -> None:
    """Write the block into the folder of a Prometheus that does not run."""
    text = folder.with_suffix(".txt")
    with text.open("w", encoding="utf-8") as out:
        family = ""
        for name, labels, curve in sorted(_series(), key=lambda each: each[0]):
            if name != family:
                family = name
                out.write(f"# TYPE {name} unknown\n")
            shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
            for at in range(-BEFORE, AFTER, STEP):
                value = curve(at)
                if value is not None:
                    out.write(f"{name}{{{shown}}} {value:.6g} {now + at:.0f}\n")
        out.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    text.unlink()


def _series() -> Iterator[tuple[str, Labels, Curve]]:
    for host in HOSTS:
        own = {"job": "rowferry-worker", "instance": f"{host.name}:9464", "host": host.name}
        for name, labels, curve in _of_host(host):
            yield name, {**own, **labels}, _until(-host.unseen_for, curve) if host.unseen_for else curve
    yield from _of_exporter()
    for (alert, severity, migration), since in FIRING.items():
        labels = {"alertname": alert, "alertstate": "firing", "severity": severity, "migration": migration}
        yield "ALERTS", labels, _step_at(since, None, 1)


def _of_host(host: Host) -> Iterator[tuple[str, Labels, Curve]]:
    yield "rowferry_build_info", {"version": host.version}, lambda _: 1
    entries = host.entries_per_second
    for queue, share in QUEUES.items():
        of = {"migration": RUNNING, "queue": queue}
        lost = host.failed_share if queue == "migrate" else 0.0002
        outcomes = {"migrated": 0.98, "kept": 0.02} if queue == "migrate" else {"kept": 1.0}
        shares = {name: part * (1 - lost) for name, part in outcomes.items()}
        shares |= {"missing": lost * 0.5, "conflict": lost * 0.12, "failed": lost * 0.38}
        for outcome, part in shares.items():
            rate = entries * share * part
            yield "rowferry_entries_total", {**of, "outcome": outcome}, _counter(host, rate)
        yield "rowferry_objects_copied_total", of, _counter(host, entries * share * 0.9)
        yield "rowferry_object_bytes_total", of, _counter(host, entries * share * 48_000)
        yield from _histogram("rowferry_object_seconds", of, host, entries * share, host.p95_seconds * 1.2)
        yield from _histogram("rowferry_batch_seconds", of, host, entries * share / 1000, host.p95_seconds * 30)
        yield from _histogram("rowferry_row_update_seconds", of, host, entries * share / 1000, 0.1)
        for step, slots in BUSY_SLOTS.items():
            yield "rowferry_step_seconds_total", {**of, "step": step}, _counter(host, slots * share)
        yield "rowferry_attempts_total", {**of, "verdict": "DONE"}, _counter(host, entries * share / 1000)
        yield "rowferry_attempts_total", {**of, "verdict": "ERROR"}, _counter(host, entries * share * lost / 200)
        yield "rowferry_claimed_batches", of, lambda _, share=share: round(4 * share)
    yield from _histogram("rowferry_claim_seconds", {}, host, entries / 500, 0.009)
    yield from _requests(host)
    yield "rowferry_objects_in_flight", {}, lambda at: 32 + 3 * math.sin(at / 200)
    yield "rowferry_objects_in_flight_limit", {}, lambda at: 60 + 4 * math.sin(at / 500)
    yield "rowferry_limit_wait_seconds_total", {"limit": "max_rows_per_second"}, _counter(host, 0.2)
    yield "rowferry_reconnects_total", {}, lambda _: 0
    for process in range(1, 5):
        name, is_lost = {"process": str(process)}, process > 4 - host.lost
        used, resident = _counter(host, host.cpu, idles=False), (88 + 3 * process) * 2**20
        yield "process_cpu_seconds_total", name, _until(LOST_AT, used) if is_lost else used
        yield "process_resident_memory_bytes", name, _step_at(LOST_AT, resident, None if is_lost else resident)


def _requests(host: Host) -> Iterator[tuple[str, Labels, Curve]]:
    rate = host.entries_per_second * 1.1
    for side, operation in (("production", "copy_object"), ("legacy", "head_object")):
        yield from _histogram("rowferry_request_seconds", {"side": side}, host, rate, host.p95_seconds)
        refused = host.throttled_share if side == "production" else 0
        for result, share in {"ok": 1 - refused - 0.01, "throttled": refused, "accessdenied": 0.01}.items():
            labels = {"side": side, "operation": operation, "result": result}
            yield "rowferry_requests_total", labels, _counter(host, rate * share)
        yield "rowferry_throttled_requests_total", {"side": side}, _counter(host, rate * refused)
        yield "rowferry_request_retries_total", {"side": side}, _counter(host, rate * refused)


def _of_exporter() -> Iterator[tuple[str, Labels, Curve]]:
    """Yield one reading of the database; processes are lost within the time shown."""
    reader = Reader()
    reading = reader.read()
    reader.close()
    own = {"job": "rowferry-exporter", "instance": "exporter:9465"}
    lost = {host.name: host.lost for host in HOSTS if host.lost}
    for family in describe(reading):
        for sample in family.samples:
            gone = lost.get(sample.labels.get("host", ""), 0)
            before = {"rowferry_live_workers": sample.value + gone, "rowferry_lost_workers": 0}
            was = before.get(sample.name, sample.value)
            yield sample.name, {**own, **sample.labels}, _step_at(LOST_AT, was, sample.value)


def _counter(host: Host, rate: float, *, idles: bool = True) -> Curve:
    """Return a counter that grows by about `rate` a second until the host is idle; its pace sways a little."""
    end, phase = -host.idle_for if idles and host.idle_for else AFTER, len(host.name) + host.entries_per_second

    def count(at: float) -> float:
        seconds = min(at, end) + BEFORE
        return max(0.0, rate * (seconds - 12 * math.cos(seconds / 240 + phase) + 12))

    return count


def _histogram(name: str, labels: Labels, host: Host, rate: float, p95: float) -> Iterator[tuple[str, Labels, Curve]]:
    """Yield the buckets of a lognormal histogram whose median is two fifths of its p95."""
    bounds = {"batch": metrics.LONG, "claim": metrics.SHORT, "row": metrics.SHORT}.get(
        name.split("_")[1], metrics.MIDDLE
    )
    median, sigma = p95 / 2.5, math.log(2.5) / 1.645
    for bound in (*bounds, math.inf):
        share = 1.0 if bound == math.inf else 0.5 * (1 + math.erf(math.log(bound / median) / sigma / math.sqrt(2)))
        le = "+Inf" if bound == math.inf else str(float(bound))
        yield f"{name}_bucket", {**labels, "le": le}, _counter(host, rate * share)
    yield f"{name}_count", labels, _counter(host, rate)


def _step_at(moment: float, before: float | None, after: float | None) -> Curve:
    return lambda at: before if at < moment else after


def _until(moment: float, curve: Curve) -> Curve:
    return lambda at: curve(at) if at < moment else None
