"""Where few files may be open, requests share the connections that there are."""

import subprocess
import sys

from support.s3.stand_in import StandIn, answer

PROGRAM = """
import resource, sys
from datetime import timedelta
from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.http import event_loop
from rowferry.s3.client import ObjectClient
from rowferry.plan import ProductionSide
from rowferry.s3.operations import head_object

resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
side = ProductionSide("bucket", endpoint_url=sys.argv[1])
client = ObjectClient(side, CredentialSnapshot("AK", "SK", None), endpoint=resolve_endpoint(side), max_in_flight=1000,
                      deadline=timedelta(seconds=90))
client.ask(head_object("production", "k"))
sent = [event_loop.submit(client.send(head_object("production", "k"))) for _ in range(1000)]
print({each.result(60).status for each in sent})
client.close()
"""


def test_requests_share_the_connections_that_could_be_opened() -> None:
    with StandIn(answer(200)) as server:
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, server.endpoint_url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "{200}\n"), done.stderr
