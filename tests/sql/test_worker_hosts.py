"""The hosts of the fleet: processes that live, that were lost, and that nothing has replaced."""

import pytest
from psycopg.rows import DictRow

from rowferry.db.connection import connect
from support.postgres.plans import explained
from support.queue.lines import Lines

pytestmark = pytest.mark.versions

EACH_WITH_EACH = """
with recent as (
    select *, last_seen_at > now() - interval '30 seconds' as is_live
    from rowferry.worker
    where stopped_at is null and last_seen_at > now() - interval '1 hour'
)
select host, count(*) filter (
    where not is_live
    and (select count(*) from recent as o where not o.is_live and o.last_seen_at >= w.last_seen_at)
    > (select count(*) from recent as o where o.started_at > w.last_seen_at)
) as unreplaced
from recent as w group by host order by host
"""
UNREPLACED = "select host, unreplaced from rowferry.worker_hosts order by host"


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


@pytest.mark.parametrize("seed", range(5))
def test_a_lost_process_is_replaced_by_one_that_began_later(lines: Lines, seed: int) -> None:
    add_workers(lines, seed)
    lines.session.execute("begin isolation level repeatable read")
    expected = ask(lines, EACH_WITH_EACH)
    assert len(expected) == 3
    assert any(row["unreplaced"] for row in expected)
    assert ask(lines, UNREPLACED) == expected


def test_no_worker_is_compared_with_each_other(lines: Lines) -> None:
    """A fleet that dies and restarts all the time has thousands within the hour."""
    add_workers(lines, 7)
    lines.session.execute("analyze rowferry.worker")
    with connect("grafana") as connection, explained(connection) as plans:
        connection.execute("select * from rowferry.worker_hosts")
        (plan,) = plans.take()
    assert [n for n in plan.nodes if n.get("Relation Name") == "worker" or "CTE Name" in n]
    assert [n["Node Type"] for n in plan.nodes if n.get("CTE Name") == "workers" and n["Actual Loops"] > 1] == []
