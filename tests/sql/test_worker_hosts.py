"""The hosts of the fleet: processes that live, and that were lost."""

import pytest
from psycopg.rows import DictRow

from rowferry.db.connection import connect
from support.postgres.plans import explained
from support.queue.lines import Lines

pytestmark = pytest.mark.versions

HOSTS = "select host, live, lost from rowferry.worker_hosts order by host"
COUNTED = """
select
    host, count(*) filter (where last_seen_at > now() - interval '30 seconds') as live,
    count(*) filter (where last_seen_at <= now() - interval '30 seconds') as lost
from rowferry.worker where stopped_at is null and last_seen_at > now() - interval '1 hour' group by host order by host
"""


def ask(lines: Lines, query: str) -> list[DictRow]:
    return lines.session.execute(query.encode()).fetchall()


def add_workers(lines: Lines, seed: int) -> None:
    """Add 100 processes on three hosts; some live, some died at their first heartbeat, some at the same time."""
    lines.session.execute(f"select setseed({seed / 100})".encode())
    lines.session.execute(
        "insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, started_at, "
        "last_seen_at) select 'w' || i, 'h' || i % 3, i, '1', 0, 1, '{copy}', now() - began, "
        "now() - least(began, greatest('0 s', began - floor(random() * 9) * interval '4 min')) "
        "from (select i, (12 + floor(random() * 40)) * interval '1 min' as began "
        "from generate_series(1, 100) as i) as w"
    )


@pytest.mark.parametrize("seed", range(3))
def test_processes_live_or_are_lost(lines: Lines, seed: int) -> None:
    add_workers(lines, seed)
    lines.session.execute("begin isolation level repeatable read")
    expected = ask(lines, COUNTED)
    assert len(expected) == 3
    assert all(row["lost"] for row in expected)
    assert ask(lines, HOSTS) == expected


def test_no_worker_is_compared_with_each_other(lines: Lines) -> None:
    """A fleet that dies and restarts all the time has thousands within the hour."""
    add_workers(lines, 7)
    lines.session.execute("analyze rowferry.worker")
    with connect("grafana") as connection, explained(connection) as plans:
        connection.execute("select * from rowferry.worker_hosts")
        (plan,) = plans.take()
    scans = [node for node in plan.nodes if node.get("Relation Name") == "worker"]
    assert len(scans) == 2
    assert [node["Node Type"] for node in scans if node["Actual Loops"] > 1] == []
