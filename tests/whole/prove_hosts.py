"""`make test-hosts`: three hosts share one queue; one is cut off while it holds batches, and comes back."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from signal import SIGTERM
from tempfile import TemporaryDirectory

import click

from support.processes import several_hosts
from support.processes.processes import wait_for

ENTRIES, BATCH_SIZE, HOSTS, WORKERS = 8000, 25, 3, 2
RELEASED_WITHIN = timedelta(seconds=45)
"""session_settings of sql/queries/session.sql promises 15 to 25 s; on a busy machine all takes longer."""

LIVE = "select count(*) from rowferry.live_workers"
LIVE_HOSTS = "select string_agg(distinct host, ', ' order by host) from rowferry.live_workers"
HELD = """
select q.id from rowferry.batch_queue as q
join rowferry.batch_attempt as a on a.batch_id = q.id and a.finished_at is null
join rowferry.worker as w on a.worker_id = w.id
where w.host = '{host}' and q.status = 'INIT'
"""
FINISHED = "select count(*) from rowferry.batch_queue as q where id = any(array{ids}::bigint[]) and status = 'DONE'"
FINISHERS = """
select string_agg(distinct w.host, ' and ' order by w.host)
from rowferry.batch_queue as q join rowferry.worker as w on q.worker_id = w.id where q.id = any(array{ids}::bigint[])
"""
LOST = "select count(*) from rowferry.batch_attempt where verdict = 'LOST'"
MOVED = "select sum(migrated + kept) from rowferry.batch_queue"


class Proof:
    """The steps, in their order; each yields what it has seen, or fails."""

    def __init__(self, hosts: several_hosts.Hosts, until: ExitStack) -> None:
        self._hosts = hosts
        self._until = until

    def run(self) -> None:
        began = time.monotonic()
        for seen in self.steps():
            click.echo(f"  {click.style('✓', fg='green')} {time.monotonic() - began:5.0f} s  {seen}")

    def steps(self) -> Iterator[str]:
        hosts, victim = self._hosts, self._hosts.hosts[0]
        hosts.run("init")
        hosts.run("prepare", str(ENTRIES), "--yes")
        yield f"{HOSTS} hosts reach PostgreSQL and S3 over a bridge; prepared {ENTRIES:,} entries"

        workers = self._until.enter_context(hosts.workers(WORKERS))
        self._wait(lambda: hosts.ask(LIVE) == HOSTS * WORKERS)
        yield f"{HOSTS * WORKERS} workers are live, on {hosts.ask(LIVE_HOSTS)}"

        hosts.run("enqueue", f"--batch-size={BATCH_SIZE}", "--yes")
        self._wait(lambda: victim.name in {share["host"] for share in hosts.query(several_hosts.SHARES)})
        self._wait(lambda: len(hosts.query(HELD.format(host=victim.name))) > 1)
        victim.cut()
        cut_at = time.monotonic()
        time.sleep(0.5)  # what was on its way before the cut is settled
        held = [row["id"] for row in hosts.query(HELD.format(host=victim.name))]
        assert held, "no batch was claimed when the link was cut: prepare more entries"
        yield f"cut every packet from and to {victim.name}, which holds {len(held)} batches"

        self._wait(lambda: hosts.ask(FINISHED.format(ids=held)) == len(held), within=RELEASED_WITHIN)
        seconds = time.monotonic() - cut_at
        finishers = hosts.ask(FINISHERS.format(ids=held))
        assert victim.name not in finishers
        yield f"PostgreSQL gave them back by itself: DONE on {finishers}, {seconds:.0f} s after the cut"

        self._wait(lambda: hosts.ask(several_hosts.WAITING) == 0)
        self._wait(lambda: victim.name not in hosts.ask(LIVE_HOSTS))
        self._must_balance()
        moved, live = hosts.ask(MOVED), hosts.ask(LIVE_HOSTS)
        yield f"all migrated: 0 legacy, {moved:,} moved, every batch balances; live are {live}"

        victim.mend()
        self._wait(lambda: victim.name in hosts.ask(LIVE_HOSTS))
        self._wait(lambda: hosts.ask(LOST) >= len(held))
        self._must_balance()
        yield f"mended the link: {victim.name} is back, wrote {hosts.ask(LOST)} attempts off as LOST, spoilt nothing"

        everybody = [worker for each in workers.values() for worker in each]
        for worker in everybody:
            worker.send_signal(SIGTERM)
        statuses = [worker.wait(60) for worker in everybody]
        assert set(statuses) == {0}, statuses
        shares = ", ".join(f"{share['host']} {share['batches']}" for share in hosts.query(several_hosts.SHARES))
        yield f"SIGTERM: all {len(everybody)} workers ended with 0; batches by host: {shares}"

    def _must_balance(self) -> None:
        assert self._hosts.ask(several_hosts.LEGACY) == 0
        assert self._hosts.ask(several_hosts.UNBALANCED) == 0

    def _wait(self, condition: Callable[[], object], within: timedelta = timedelta(seconds=120)) -> None:
        wait_for(condition, deadline=within)


def prove() -> int:
    if reason := several_hosts.why_not():
        click.secho(f"Nothing could be proven: {reason}.", fg="red", err=True)
        return 1
    click.echo(f"{HOSTS} network namespaces as hosts, {WORKERS} workers on each")
    with TemporaryDirectory(prefix="rf-hosts-") as folder, ExitStack() as until:
        hosts = until.enter_context(several_hosts.start_hosts(HOSTS, Path(folder)))
        Proof(hosts, until).run()
    click.echo("Nothing is left of it on this machine.")
    return 0


if __name__ == "__main__":
    sys.exit(prove())
