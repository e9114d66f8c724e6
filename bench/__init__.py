"""What `make bench` measures: one file a bench, in `bench/benches/`, each loaded when it is run."""

from importlib import import_module
from types import ModuleType

BENCHES = {
    "copy": "rowferry worker against boto3, rclone and s5cmd, within a server.",
    "stream": "20 kB to 1 GB from one server to another, against rclone and boto3.",
    "throttled": "A server that lets 1,000 or 300 writes/s through, and 1, 4 and 16 workers; random refusals.",
    "outage": "How fast the pace is back after the server was away for 3 s and 60 s.",
    "application": "Reads and updates of the table while eight workers move its rows.",
    "claim": "Claims of 16 workers: an empty queue, a full one, another open transaction; jobs of pgqueuer.",
}
"""Each bench with its line in `python -m bench --list`, in the order in which they run."""


def load_bench(name: str) -> ModuleType:
    """Return the module of a bench: `run(record)` measures."""
    return import_module(f"bench.benches.{name}")
