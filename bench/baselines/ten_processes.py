"""Baseline: processes with one boto3 connection each, the method that rowferry starts from.

Each process takes a batch of rows by FOR UPDATE SKIP LOCKED, copies their objects one after the other, updates their
rows, commits, and takes the next batch.

    python -m bench.baselines.ten_processes --url URL --processes 10 --batch-size 100

works on the table `pictures` of DATABASE_URL until no row is legacy, and prints one JSON line: the seconds from the
first claim to the last commit, and the CPU in between.
"""

import argparse
import multiprocessing
import os
import time

import psycopg

from bench.baselines.boto3_threads import open_client
from bench.timing import tell

CLAIM = """
select id, path from pictures
where path like 'image/%%'
order by id limit %(rows)s
for update skip locked
"""
UPDATE = "update pictures set path = %s where id = %s"


def work(url: str, batch_size: int) -> tuple[float, float, float]:
    """Work until nothing is left; return when it began, when it ended (time.monotonic()), and the CPU in between."""
    client = open_client(url, 1)
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        began, used = time.monotonic(), time.process_time()
        while rows := connection.execute(CLAIM, {"rows": batch_size}).fetchall():
            updates = []
            for row_id, key in rows:
                target = key.replace("image/", "avatar/", 1)
                client.copy_object(Bucket="production", Key=target, CopySource={"Bucket": "legacy", "Key": key})
                updates.append((target, row_id))
            with connection.cursor() as cursor:
                cursor.executemany(UPDATE, updates)
            connection.commit()
        connection.commit()
        return began, time.monotonic(), time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=100)
    options = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        spans = pool.starmap(work, [(options.url, options.batch_size)] * options.processes, chunksize=1)
        pool.close()
        pool.join()
    seconds = max(end for _, end, _ in spans) - min(began for began, _, _ in spans)
    tell(seconds, sum(used for _, _, used in spans))


if __name__ == "__main__":
    main()
