"""Network namespaces as hosts: workers that share only the database and the buckets; `make test-hosts` shows more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import several_hosts
from support.processes.processes import wait_for

ENTRIES = 600
SLOWLY = """
[database]
max_rows_per_second = 100
"""
"""One host alone would take 12 s for all: longer than a worker that found nothing to do rests before it looks again."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[several_hosts.Hosts]:
    reason = several_hosts.why_not()
    if reason:
        pytest.skip(reason)
    with several_hosts.start_hosts(2, tmp_path) as found:
        plan = tmp_path / "rowferry.toml"
        plan.write_text(plan.read_text() + SLOWLY)
        yield found


@pytest.mark.soak
def test_workers_on_several_hosts_share_one_queue(hosts: several_hosts.Hosts) -> None:
    hosts.run("init")
    hosts.run("prepare", str(ENTRIES), "--yes")
    with hosts.workers(1):
        wait_for(lambda: hosts.ask("select count(*) from rowferry.live_workers") == 2)
        hosts.run("enqueue", "--batch-size=10", "--yes")
        wait_for(lambda: hosts.ask(several_hosts.WAITING) == 0)
        live = hosts.query("select host, claimed_batches from rowferry.live_workers order by host")
        assert live == [{"host": "host-1", "claimed_batches": 0}, {"host": "host-2", "claimed_batches": 0}]
    assert hosts.ask(several_hosts.LEGACY) == 0
    assert hosts.ask(several_hosts.UNBALANCED) == 0
    shares = hosts.query(several_hosts.SHARES)
    assert [share["host"] for share in shares] == ["host-1", "host-2"]
    assert all(share["batches"] for share in shares)
