"""`rowferry worker` that tells on its last line what each claim took: `python -m bench.timed_claims OPTIONS`."""

import json
import sys
import time
from typing import Any

import rowferry_cli
from rowferry_worker import slot
from rowferry_worker.batch.claim import claim_batch

claims: list[float] = []


def claim_timed(*arguments: Any) -> Any:
    """Claim as a worker does, and note the seconds of a claim that found a batch."""
    began = time.perf_counter()
    batch = claim_batch(*arguments)
    if batch is not None:
        claims.append(time.perf_counter() - began)
    return batch


if __name__ == "__main__":
    slot.claim_batch = claim_timed
    sys.argv = ["rowferry", "worker", *sys.argv[1:]]
    try:
        rowferry_cli.main()
    finally:
        print(json.dumps(claims), flush=True)
