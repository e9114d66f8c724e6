"""A worker leaves descriptors for PostgreSQL and the look-up of names, however many objects may be in flight."""

import json
import subprocess
import sys

import pytest

from rowferry.http.descriptors import Descriptors
from support.s3.stand_in import StandIn, keep_silent

PROGRAM = """
import json, resource, sys, time
from datetime import timedelta
from botocore.credentials import Credentials
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.http import event_loop
from rowferry.s3.client import ObjectClient
from rowferry.plan import ProductionSide
from rowferry.s3.operations import head_object

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))
side = ProductionSide("bucket", endpoint_url=sys.argv[1])
client = ObjectClient(side, Credentials("AK", "SK"), endpoint=resolve_endpoint(side), max_in_flight=1000,
                      deadline=timedelta(seconds=90))
for _ in range(1000):
    event_loop.submit(client.send(head_object("production", "k")))
pool = client._pool
until = time.monotonic() + 60
while time.monotonic() < until and (len(pool._open) < 100 or pool._opening):
    time.sleep(0.05)
files = [open("/dev/null") for _ in range(50)]
print(json.dumps({"limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "open": len(pool._open)}))
client.close()
"""


def test_the_limit_is_raised_and_connections_leave_room_under_it() -> None:
    with StandIn(keep_silent) as server:
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, server.endpoint_url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"limit": 200, "open": 100}


def test_the_log_says_once_where_the_limit_bounds(caplog: pytest.LogCaptureFixture) -> None:
    descriptors = Descriptors()
    descriptors.max_used, descriptors.used = 10, 7
    assert [descriptors.grant(wanted) for wanted in (2, 5, 9)] == [2, 3, 3]
    descriptors.used = 12
    assert descriptors.grant(1) == 0
    assert caplog.text.count("ulimit -n") == 1
