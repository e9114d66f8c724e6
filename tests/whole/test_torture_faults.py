"""That the faults of `make torture` come, and that they are seen where they are counted."""

import errno

import pytest

from support.s3.request_log import LoggedRequest
from torture.bad_s3 import BadS3
from torture.scenarios import SCENARIOS
from torture.scenarios.servers import suppress_full_disk

pytestmark = [pytest.mark.timeout(200), pytest.mark.soak]

READ, WRITE = LoggedRequest("GET", "/legacy/a", "", {}), LoggedRequest("PUT", "/production/a", "uploadId=1", {})


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_promises_a_kind_of_fault(name: str) -> None:
    assert SCENARIOS[name].faults


def test_a_bad_server_leaves_it_to_chance_how_often_but_not_whether() -> None:
    rates = {"reset": 0.01, "200 with an error": 0.01}
    with BadS3("http://127.0.0.1:9", 1, rates).running() as bad:
        assert "reset" in [bad._choose(READ) for _ in range(101)]
        assert "200 with an error" not in [bad._choose(READ) for _ in range(400)], "a GET cannot fail like that"
        assert bad._choose(WRITE) == "200 with an error"
        bad.rates = {}
        assert {bad._choose(request) for request in (READ, WRITE) for _ in range(400)} == {None}


def test_only_a_full_disk_is_taken_for_one() -> None:
    with suppress_full_disk():
        raise OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="broken"), suppress_full_disk():
        raise OSError(errno.EIO, "broken")
