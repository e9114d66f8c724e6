"""Baseline: obstore, which is Rust below: compressed objects read, inflated, hashed and counted; no row is written.

    python -m bench.baselines.obstore_inspect --url URL --bucket legacy --objects 6000 --in-flight 256

prints one JSON line: the seconds from the first request to the last answer, and the CPU in between.
"""

import argparse
import asyncio
import hashlib
import os
import sys
import time
import zlib

from obstore.store import S3Store  # pyright: ignore[reportMissingImports]

from bench.timing import tell
from rowferry_lab.servers.fake_s3.uniform import name_key


async def inspect_all(store: S3Store, objects: int, in_flight: int, lines: int) -> None:
    numbers = iter(range(1, objects + 1))

    async def inspect_some() -> None:
        for number in numbers:
            body = bytes(await (await store.get_async(name_key(number))).bytes_async())
            content = zlib.decompress(body, 16 + zlib.MAX_WBITS)
            facts = len(body), hashlib.sha256(body).hexdigest(), content.count(b"\n")
            assert facts[2] == lines, facts

    await asyncio.gather(*(inspect_some() for _ in range(in_flight)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--lines", type=int, required=True)
    options = parser.parse_args()
    store = S3Store(
        options.bucket,
        endpoint=options.url,
        region="us-east-1",
        access_key_id="bench",
        secret_access_key="bench",
        client_options={"allow_http": True},
    )
    began, used = time.monotonic(), time.process_time()
    asyncio.run(inspect_all(store, options.objects, options.in_flight, options.lines))
    tell(time.monotonic() - began, time.process_time() - used)
    sys.stdout.flush()
    os._exit(0)  # the threads of its runtime abort at the end of Python now and then


if __name__ == "__main__":
    main()
