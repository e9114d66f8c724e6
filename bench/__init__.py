"""What `make bench` measures: one file a bench, in `bench/benches/`, each loaded when it is run."""

from importlib import import_module
from types import ModuleType

BENCHES = {
    "throttled": "A server that lets 1,000 or 300 writes/s through, and 1, 4 and 16 workers; random refusals.",
    "outage": "How fast the pace is back after the server was away for 3 s and 60 s.",
    "copy": "One worker against boto3, rclone and s5cmd, on three servers and over TLS.",
    "stream": "20 kB to 1 GB streamed, on three servers and over TLS, against rclone and boto3; memory of a worker.",
    "claim": "Claim latency with 16 workers: an empty queue, a full one, and a stranger's open transaction.",
}
"""Each bench with its line in `python -m bench --list`, in the order in which they run."""


def load_bench(name: str) -> ModuleType:
    """Return the module of a bench: `run(record)` measures."""
    return import_module(f"bench.benches.{name}")
