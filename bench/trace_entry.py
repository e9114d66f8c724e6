"""How many calls, files, hops between files and threads one entry takes, from its claim to COMMIT.

    python -m bench.trace_entry [--calls]

Traces a batch of one entry in a worker that has processed others before. Counts only files of rowferry; a coroutine
that goes on after an `await` counts as a call. `--calls` prints each of them.
"""

import argparse
import sys
import threading
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import FrameType

from bench.environment import fake_s3, running_postgres
from bench.migration import enqueue_rows, make_rows
from rowferry.db.connection import connect
from rowferry.http import event_loop
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.queues import find_queue
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import WorkerState

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = tuple(str(ROOT / folder) for folder in ("rowferry", "worker", "queues"))
ENTRIES = 24
"""The last of them is traced: by then the worker knows the servers, and asks about no tags."""


class Trace:
    """The calls of functions in files of rowferry, in all traced threads."""

    def __init__(self) -> None:
        """Nothing was called yet."""
        self.calls: list[tuple[str, str, str]] = []
        """Thread, file and function."""

    def start(self) -> None:
        """Trace this thread from now on."""
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PRODUCT):
            file = str(Path(frame.f_code.co_filename).relative_to(ROOT))
            self.calls.append((threading.current_thread().name, file, frame.f_code.co_name))


def trace_entry() -> Trace:
    """Return the calls of the last entry, from after its claim to COMMIT."""
    trace = Trace()
    with running_postgres(), fake_s3(0) as server:
        make_rows(ENTRIES)
        enqueue_rows(server.endpoint_url, server.endpoint_url, 1)
        state = WorkerState("trace", ["migrate"], Ledger("trace"), MigrationContextCache(16), CopyScheduler(16))
        with closing(connect("worker trace", bounded=True)) as connection:
            for number in range(1, ENTRIES + 1):
                batch = claim_batch(connection, ["migrate"])
                assert batch is not None
                claimed = ClaimedBatch(state, connection, batch, find_queue(batch.queue_name))
                if number == ENTRIES:
                    event_loop.call_soon(trace.start)
                    trace.start()
                claimed.run()
                sys.setprofile(None)
        event_loop.call_soon(sys.setprofile, None)
        state.migration_contexts.close()
        state.ledger.close()
    return trace


def main() -> None:
    """Trace an entry and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", action="store_true")
    options = parser.parse_args()
    calls = trace_entry().calls
    if options.calls:
        for thread, file, function in calls:
            print(f"{thread:<14} {file} {function}")
    files = [file for _, file, _ in calls]
    hops = sum(before != after for before, after in pairwise(files))
    threads = {thread for thread, _, _ in calls}
    print(f"{len(calls)} calls, {len(set(files))} files, {hops} hops between files, {len(threads)} threads")


if __name__ == "__main__":
    main()
