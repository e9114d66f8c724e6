"""Baseline: nothing but awscrt, AWS's own C runtime: copies without a decision, a metric or a row.

    python -m bench.baselines.awscrt_alone --url URL --objects 6000 --in-flight 512

prints one JSON line: the seconds from the first request to the last answer, and the CPU in between.
"""

import argparse
import itertools
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from awscrt import auth, http, io, s3  # pyright: ignore[reportMissingImports]

from bench.timing import tell
from rowferry_lab.servers.fake_s3.uniform import name_key


def open_client(in_flight: int) -> Any:
    """Return a client that keeps so many connections."""
    loops = io.EventLoopGroup(1)
    provider = auth.AwsCredentialsProvider.new_static("bench", "bench")
    return s3.S3Client(
        bootstrap=io.ClientBootstrap(loops, io.DefaultHostResolver(loops)),
        region="us-east-1",
        tls_mode=s3.S3RequestTlsMode.DISABLED,
        throughput_target_gbps=0.4 * in_flight,
        max_active_connections_override=in_flight,
        signing_config=s3.create_default_s3_signing_config(region="us-east-1", credential_provider=provider),
    )


class Copies:
    """Copies objects, each answer sending the next request."""

    def __init__(self, client: Any, host: str, objects: int) -> None:
        self._client = client
        self._host = host
        self._numbers = iter(range(1, objects + 1))
        self._open = itertools.count(objects - 1, -1)
        self.done = threading.Event()

    def send(self, **ended: Any) -> None:
        """Send the next copy; `ended` is what awscrt says of the one before."""
        if ended:
            assert ended["error"] is None, ended
            if next(self._open) == 0:
                self.done.set()
        number = next(self._numbers, None)
        if number is None:
            return
        key = name_key(number)
        target = key.replace("image/", "avatar/", 1)
        headers = [("Host", self._host), ("x-amz-copy-source", f"/legacy/{key}"), ("Content-Length", "0")]
        self._client.make_request(
            type=s3.S3RequestType.DEFAULT,
            operation_name="CopyObject",
            request=http.HttpRequest("PUT", f"/production/{target}", http.HttpHeaders(headers)),
            on_done=self.send,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=512)
    options = parser.parse_args()
    copies = Copies(open_client(options.in_flight), urlsplit(options.url).netloc, options.objects)
    began, used = time.monotonic(), time.process_time()
    for _ in range(min(options.in_flight, options.objects)):
        copies.send()
    assert copies.done.wait(600), "not all copies were answered"
    tell(time.monotonic() - began, time.process_time() - used)


if __name__ == "__main__":
    main()
