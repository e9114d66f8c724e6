"""Workers on four hosts, one of which is cut off in both directions in the middle of a batch."""

import time
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from psycopg.conninfo import make_conninfo

from support.processes import several_hosts
from support.processes.processes import wait_for
from torture.bad_s3 import BadS3
from torture.namespace import inside
from torture.run import Run
from torture.workers import WORKER
from torture.world import World

WHAT = "four hosts as network namespaces; one loses every packet, both ways, in the middle of a batch, and comes back"

FAULTS = frozenset({"hosts cut off", "batches claimed then"})

HOSTS = 4
DONE_WITHIN = timedelta(seconds=60)
"""Until another host has finished the batch. PostgreSQL frees it in 15 to 25 s; a busy machine is slower."""
WITHIN = timedelta(seconds=120)
HBA = "local all all scram-sha-256\nhost all all all scram-sha-256\n"
HELD = """
select q.id from rowferry.batch_queue as q
join rowferry.batch_attempt as a on a.batch_id = q.id and a.finished_at is null
join rowferry.worker as w on a.worker_id = w.id
where w.host = %s and q.status = 'INIT'
"""
LEFT = "select count(*)::int from rowferry.batch_queue where id = any(%s) and status = 'INIT'"
SPOILT = """
select count(*)::int from rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id
where q.id = any(%s) and (q.status <> 'DONE' or w.host = %s)
"""
FINISHED_BY = """
select count(*)::int from rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id
where w.host = %s and q.finished_at > %s
"""
TAKEN = """
select count(*)::int from rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id
where w.host <> %s and q.id = any(%s) and q.status = 'DONE'
"""
"""Of the batches that a host held, those that PostgreSQL took from it: another host has finished them."""
LONGEST = "s at the longest until its batches were done elsewhere"
LIVE = "select count(distinct host)::int from rowferry.live_workers"
NOW = "select clock_timestamp()"


def torture(run: Run) -> None:
    """Cut off one host after the other."""
    if reason := several_hosts.why_not():
        run.skipped.append(reason)
        return
    with (
        several_hosts.network(HOSTS) as (hub, hosts),
        inside(hub),
        TemporaryDirectory(prefix="rowferry-hba-") as folder,
    ):
        hba = Path(folder) / "pg_hba.conf"
        Path(folder).chmod(0o755)
        hba.write_text(HBA)
        settings = {"listen_addresses": "*", "hba_file": str(hba)}
        # S3 is relayed as it is: what matters is that PostgreSQL itself cannot reach the host.
        with run.world(settings=settings) as world, relayed(world) as relay:
            world.migration.reach_through(relay.endpoint_url)
            world.environment["DATABASE_URL"] = make_conninfo(world.migration.dsn, host=several_hosts.HUB_ADDRESS)
            cut_off(run, world, hosts[: 1 if run.short else HOSTS], hosts)


def relayed(world: World) -> AbstractContextManager[BadS3]:
    return BadS3(world.s3.endpoint_url, 0, {}, host=several_hosts.HUB_ADDRESS).running()


def cut_off(run: Run, world: World, victims: list[several_hosts.Host], hosts: list[several_hosts.Host]) -> None:
    world.fill(600, large=2)
    world.enqueue(25)
    with world.workers(HOSTS, command=lambda seat: hosts[seat].command(*WORKER, "--parallel=8")) as pool:
        wait_for(lambda: world.ask(LIVE) == HOSTS, deadline=WITHIN)
        for victim in victims:
            held = cut(world, victim)
            began = time.monotonic()
            wait_for(lambda held=held: world.ask(LEFT, held) == 0, deadline=DONE_WITHIN)
            seconds = round(time.monotonic() - began)
            run.say(f"{victim.name}: its {len(held)} batches done elsewhere after {seconds} s")
            run.faults[LONGEST] = max(run.faults[LONGEST], seconds)
            victim.mend()
            come_back(world, victim, held)
            taken = world.ask(TAKEN, victim.name, held)
            run.faults["batches claimed then"] += taken
            run.faults["hosts cut off"] += taken > 0
        world.wait_until_done()
        assert pool.stop() == [0] * HOSTS
        for death in pool.deaths:
            world.auditor.report(f"a worker died of it: {death}: {pool.log_of(death.seat)[-800:]}")
    world.run_final_checks()


def cut(world: World, victim: several_hosts.Host) -> list[int]:
    """Cut a host off while it holds batches, and return which."""
    give_up_at = time.monotonic() + WITHIN.total_seconds()
    while time.monotonic() < give_up_at:
        keep_busy(world)
        wait_for(lambda: world.query(HELD, victim.name), deadline=WITHIN)
        victim.cut()
        time.sleep(0.5)  # what was on its way before the cut is settled
        if held := [row["id"] for row in world.query(HELD, victim.name)]:
            return held
        victim.mend()
    raise AssertionError(f"{victim.name} was never caught with a claimed batch")


def come_back(world: World, victim: several_hosts.Host, held: list[int]) -> None:
    """See that the host commits nothing of its claimed batches, and goes on working."""
    now = world.ask(NOW)

    def has_gone_on() -> bool:
        keep_busy(world)
        return world.ask(FINISHED_BY, victim.name, now) > 0

    wait_for(has_gone_on, deadline=WITHIN)
    if spoilt := world.ask(SPOILT, held, victim.name):
        world.auditor.report(f"{spoilt} batches that {victim.name} had lost bear its name")


def keep_busy(world: World) -> None:
    """Add entries while too few batches wait for all hosts to hold some."""
    if world.waiting() < 4 * HOSTS:
        world.fill(400)
        world.enqueue(25)
