"""The functions of the queue by themselves, one batch after the other: claim, attempt, DONE, as a worker calls them.

`python -m bench.bare_functions [BATCHES]` ends after so many, or when nothing is due, and tells the seconds that each
claim took; see bench/benches/claim.py.
"""

import os
import sys
import time
from collections.abc import Iterator
from itertools import islice

from bench.barrier import Run, wait_for_start
from rowferry.batch import Judgement, Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_verdict
from rowferry_worker.ledger import Ledger

QUEUES = ["migrate"]


def finish_batches(connection: Connection, ledger: Ledger) -> Iterator[float]:
    """Claim and finish one batch after the other until nothing is due; yield the seconds that each claim took."""
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
        yield claimed - began


def main(most: int | None = None) -> None:
    connection, ledger = connect("bench"), Ledger(f"bench {os.getpid()}")
    ledger.flush()
    run = Run(wait_for_start())
    claims = list(islice(finish_batches(connection, ledger), most))
    run.tell(len(claims), claims)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
