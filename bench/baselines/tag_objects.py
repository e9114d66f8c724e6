"""Baseline: tags merged by boto3, for each row of a table; in processes with one kept connection each, or in threads.

    python -m bench.baselines.tag_objects --url URL --bucket BUCKET --objects 1000 --processes 10
    python -m bench.baselines.tag_objects --url URL --bucket BUCKET --objects 6000 --threads 128

reads the first rows of the table `pictures` of DATABASE_URL, and for each of them the tags of its object; adds its own,
and puts all of them. Prints one JSON line: the seconds from the first request to the last answer, and the CPU between.
"""

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from bench.baselines.boto3_threads import open_client
from bench.timing import tell

ROWS = "select path, tenant from pictures order by id limit %s"
Row = tuple[str, str]


def read_rows(count: int) -> list[Row]:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return connection.execute(ROWS, [count]).fetchall()


def tag(client: Any, bucket: str, row: Row) -> None:
    """Merge the tags of one row with those that its object has."""
    key, tenant = row
    found = client.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    tags = {each["Key"]: each["Value"] for each in found} | {"tier": "cold", "tenant": tenant}
    listed = [{"Key": name, "Value": value} for name, value in tags.items()]
    client.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": listed})


def tag_in_threads(url: str, bucket: str, rows: list[Row], threads: int) -> tuple[float, float, float]:
    """Return when it began, when it ended (time.monotonic()), and the CPU in between."""
    client = open_client(url, threads)
    with ThreadPoolExecutor(threads) as pool:
        began, used = time.monotonic(), time.process_time()
        for _ in pool.map(lambda row: tag(client, bucket, row), rows):
            pass
        return began, time.monotonic(), time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    options = parser.parse_args()
    rows, processes = read_rows(options.objects), options.processes
    work = [(options.url, options.bucket, rows[number::processes], options.threads) for number in range(processes)]
    if processes == 1:
        spans = [tag_in_threads(*work[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            spans = pool.starmap(tag_in_threads, work, chunksize=1)
            pool.close()
            pool.join()
    seconds = max(end for _, end, _ in spans) - min(began for began, _, _ in spans)
    tell(seconds, sum(used for _, _, used in spans))


if __name__ == "__main__":
    main()
