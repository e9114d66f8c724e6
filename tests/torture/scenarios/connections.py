"""The connections between workers and both servers are slow, reset, silent, or slow to close."""

import time
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.processes.processes import wait_for
from torture.run import Run
from torture.symptoms import CLOSE_DELAY, LATENCY, SYMPTOMS, feel
from torture.toxiproxy import Toxiproxy, find_toxiproxy, running_toxiproxy
from torture.world import World

WHAT = "toxiproxy between workers and both servers: latency, resets, silence, slow close, narrow and cut-up streams"

SEATS = 4
TOXICS: dict[str, tuple[str, dict[str, int]]] = {
    "slow connections": ("latency", LATENCY),
    "resets": ("reset_peer", {"timeout": 50}),
    "silences": ("timeout", {"timeout": 0}),
    "slow closes": ("slow_close", CLOSE_DELAY),
    "cut-offs in mid-stream": ("limit_data", {"bytes": 20_000}),
    "streams in small pieces": ("slicer", {"average_size": 64, "size_variation": 32, "delay": 100}),
}
SHORT = ("slow connections", "resets", "silences", "slow closes")
FAULTS = frozenset(SHORT)
TRIES = 5
"""So often a fault is repeated that was not seen: workers may have had nothing to say just then."""
COUNTED_WITHIN = timedelta(seconds=5)
"""The proxy counts the bytes of a connection when both its ends are closed."""
RELEASED_WITHIN = timedelta(seconds=60)
"""Of a batch whose S3 server fell silent; 30 s are promised, and a busy machine takes longer for everything."""
IN_HAND = "select id from rowferry.batch_attempt where finished_at is null"
STILL_IN_HAND = "select count(*)::int from rowferry.batch_attempt where finished_at is null and id = any(%s)"


@dataclass(frozen=True, slots=True)
class Line:
    """The way of workers to one server."""

    server: str
    toxiproxy: Toxiproxy
    address: str


def torture(run: Run) -> None:
    """Spoil the connections to one server, then to the other, in each of the ways."""
    program = find_toxiproxy()
    if program is None:
        run.skipped.append("toxiproxy is not here: `make torture` builds it where `go` is installed")
        return
    with running_toxiproxy(program) as toxiproxy, run.world() as world:
        lines = lead_through(world, toxiproxy)
        world.fill(400, large=2)
        world.enqueue(20)
        with world.workers(SEATS, "--parallel=8") as pool:
            for line in lines:
                for fault in SHORT if run.short else TOXICS:
                    run.say(f"{line.server}: {fault}")
                    spoil(run, world, line, fault)
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        world.run_final_checks()


def lead_through(world: World, toxiproxy: Toxiproxy) -> list[Line]:
    """Let only the workers reach both servers through toxiproxy; return both ways."""
    dsn = world.migration.dsn
    known = conninfo_to_dict(dsn)
    s3 = Line("s3", toxiproxy, toxiproxy.add_proxy("s3", urlsplit(world.s3.endpoint_url).netloc))
    address = toxiproxy.add_proxy("postgresql", f"{known['host']}:{known['port']}")
    host, port = address.rsplit(":", 1)
    world.environment["DATABASE_URL"] = make_conninfo(dsn, host=host, port=port)
    world.migration.reach_through(f"http://{s3.address}")
    return [s3, Line("postgresql", toxiproxy, address)]


def spoil(run: Run, world: World, line: Line, fault: str) -> None:
    """Spoil the connections to a server until that was seen; see that the work goes on afterwards."""
    for _ in range(TRIES):
        keep_busy(world)
        if is_met(run, world, line, fault):
            run.faults[fault] += 1
            break
    before = world.ask(DONE)
    keep_busy(world)
    wait_for(lambda: world.ask(DONE) > before, deadline=timedelta(seconds=90))


def is_met(run: Run, world: World, line: Line, fault: str) -> bool:
    """Spoil the connections to a server for a while, while batches are claimed; return whether it was seen.

    Bytes that a fault swallows are those of workers: only `feel` also takes this way, where no bytes are lost.
    """
    kind, attributes = TOXICS[fault]
    before = line.toxiproxy.swallowed_bytes(line.server)
    with line.toxiproxy.toxic(line.server, kind, **attributes):
        time.sleep(run.random.uniform(1, 2) if run.short else run.random.uniform(5, 10))
        if fault in SYMPTOMS:
            keep_busy(world)  # what lets all bytes through lets workers finish what they had
            return SYMPTOMS[fault](feel(line.server, line.address))
        if fault == "silences" and line.server == "s3" and not run.short:
            must_be_given_back(world)
    try:
        wait_for(lambda: line.toxiproxy.swallowed_bytes(line.server) > before, deadline=COUNTED_WITHIN)
    except AssertionError:
        return False
    return True


DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"


def keep_busy(world: World) -> None:
    """Return once batches are claimed and more are waiting."""

    def look() -> bool:
        if world.waiting() < 4 * SEATS:
            world.fill(400)
            world.enqueue(20)
        return bool(world.query(IN_HAND))

    wait_for(look, deadline=timedelta(seconds=90))


def must_be_given_back(world: World) -> None:
    """Report batches that workers hold for longer than they may while no server answers."""
    held = [row["id"] for row in world.query(IN_HAND)]
    try:
        wait_for(lambda: world.ask(STILL_IN_HAND, held) == 0, deadline=RELEASED_WITHIN)
    except AssertionError:
        world.auditor.report(f"of {len(held)} attempts, {world.ask(STILL_IN_HAND, held)} wait for S3 for ever")
