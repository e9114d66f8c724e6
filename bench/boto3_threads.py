"""Baseline: boto3 in threads, one client for all. It copies within an endpoint, or streams between two.

python -m bench.boto3_threads --url URL --to URL --objects 6000 --threads 64
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config

from rowferry_lab.servers.fake_s3.uniform import name_key


def open_client(url: str, threads: int) -> Any:
    """Return a client that keeps a connection for each thread."""
    config = Config(max_pool_connections=threads, s3={"addressing_style": "path"})
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", config=config)


def make_copy(url: str, threads: int) -> Callable[[int], None]:
    """Return what copies one object within one endpoint."""
    client = open_client(url, threads)

    def copy(number: int) -> None:
        key = name_key(number)
        target = key.replace("image/", "avatar/", 1)
        client.copy_object(Bucket="production", Key=target, CopySource={"Bucket": "legacy", "Key": key})

    return copy


def make_stream(url: str, to_url: str, threads: int) -> Callable[[int], None]:
    """Return what streams one object from one endpoint to the other."""
    reader, writer = open_client(url, threads), open_client(to_url, threads)

    def stream(number: int) -> None:
        key = name_key(number)
        found = reader.get_object(Bucket="legacy", Key=key)
        target = key.replace("image/", "avatar/", 1)
        writer.put_object(Bucket="production", Key=target, Body=found["Body"].read(), ContentType=found["ContentType"])

    return stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--to", required=True, help="copy within the endpoint if it is the same, stream otherwise")
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--threads", type=int, default=64)
    options = parser.parse_args()
    if options.to == options.url:
        move = make_copy(options.url, options.threads)
    else:
        move = make_stream(options.url, options.to, options.threads)
    with ThreadPoolExecutor(options.threads) as pool:
        for _ in pool.map(move, range(1, options.objects + 1)):
            pass


if __name__ == "__main__":
    main()
