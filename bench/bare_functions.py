"""The functions of the queue by themselves, one batch after the other: claim, attempt, DONE, as a worker calls them.

`python -m bench.bare_functions` works until nothing is due; see bench/benches/rivals.py.
"""

import os
import time
from collections.abc import Iterator

from bench.starting_gate import Run, wait_for_start
from rowferry.batch import Judgement, Verdict
from rowferry.database import Connection, connect
from rowferry_worker.claim import begin_attempt, claim_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.verdict import write_verdict

QUEUES = ["migrate"]


def finish_batches(connection: Connection, ledger: Ledger) -> Iterator[tuple[float, float]]:
    """Claim and finish one batch after the other; yield the seconds of each claim, and of the batch from there on."""
    while True:
        began = time.perf_counter()
        batch = claim_batch(connection, QUEUES)
        claimed = time.perf_counter()
        if batch is None:
            connection.rollback()
            return
        attempt = begin_attempt(ledger, batch, "bench")
        write_verdict(connection, batch, attempt, Judgement(Verdict.DONE), ())
        connection.commit()
        yield claimed - began, time.perf_counter() - claimed


def main() -> None:
    connection, ledger = connect("bench"), Ledger(f"bench {os.getpid()}")
    ledger.settle()
    run = Run(wait_for_start())
    run.tell(sum(1 for _ in finish_batches(connection, ledger)))


if __name__ == "__main__":
    main()
