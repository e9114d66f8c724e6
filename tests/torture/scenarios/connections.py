"""Scenario 4: the connections between workers and both servers are slow, reset, silent, or slow to close."""

import time
from datetime import timedelta
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from processes import wait_for
from torture.run import Run
from torture.toxiproxy import Toxiproxy, find_toxiproxy, running_toxiproxy
from torture.world import World

WHAT = "toxiproxy between workers and both servers: latency, resets, silence, slow close, narrow and cut-up streams"

SEATS = 4
TOXICS: dict[str, tuple[str, dict[str, int]]] = {
    "slow connections": ("latency", {"latency": 200, "jitter": 150}),
    "resets": ("reset_peer", {"timeout": 50}),
    "silences": ("timeout", {"timeout": 0}),
    "slow closes": ("slow_close", {"delay": 2000}),
    "cut-offs in mid-stream": ("limit_data", {"bytes": 20_000}),
    "streams in small pieces": ("slicer", {"average_size": 64, "size_variation": 32, "delay": 100}),
}
SHORT = ("slow connections", "resets", "silences", "slow closes")
RELEASED_WITHIN = timedelta(seconds=60)
"""Of a batch whose S3 server fell silent; 30 s are promised, and a busy machine takes longer for everything."""
IN_HAND = "select id from rowferry.batch_attempt where finished_at is null"
STILL_IN_HAND = "select count(*)::int from rowferry.batch_attempt where finished_at is null and id = any(%s)"


def torture(run: Run) -> None:
    """Spoil the connections to one server, then to the other, in each of the ways."""
    program = find_toxiproxy()
    if program is None:
        run.skipped.append("toxiproxy is not here: `make torture` builds it where `go` is installed")
        return
    with running_toxiproxy(program) as toxiproxy, run.world() as world:
        lead_through(world, toxiproxy)
        world.fill(400, large=2)
        world.enqueue(20)
        with world.workers(SEATS, "--parallel=8") as crew:
            for server in ("s3", "postgresql"):
                for fault in SHORT if run.short else TOXICS:
                    run.say(f"{server}: {fault}")
                    spoil(run, world, toxiproxy, server, fault)
            run.say("waiting for the rest")
            world.wait_until_done()
            assert crew.stop() == [0] * SEATS
            for death in crew.deaths:
                world.auditor.report(f"a worker died of it: {death}: {crew.log_of(death.seat)[-800:]}")
        world.settle()


def lead_through(world: World, toxiproxy: Toxiproxy) -> None:
    """Let workers, and nobody else, reach both servers through toxiproxy."""
    dsn = world.migration.dsn
    known = conninfo_to_dict(dsn)
    host, port = toxiproxy.add_proxy("postgresql", f"{known['host']}:{known['port']}").rsplit(":", 1)
    world.environment["DATABASE_URL"] = make_conninfo(dsn, host=host, port=port)
    listening = toxiproxy.add_proxy("s3", urlsplit(world.s3.endpoint_url).netloc)
    world.migration.reach_through(f"http://{listening}")


def spoil(run: Run, world: World, toxiproxy: Toxiproxy, server: str, fault: str) -> None:
    """Spoil the connections to a server for a while, with batches in hand; see that the work goes on afterwards."""
    kind, attributes = TOXICS[fault]
    keep_busy(world)
    with toxiproxy.toxic(server, kind, **attributes):
        run.faults[fault] += 1
        time.sleep(run.random.uniform(1, 3) if run.short else run.random.uniform(5, 10))
        if fault == "silences" and server == "s3" and not run.short:
            must_be_given_back(world)
    before = world.ask(DONE)
    keep_busy(world)
    wait_for(lambda: world.ask(DONE) > before, deadline=timedelta(seconds=90))


DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"


def keep_busy(world: World) -> None:
    """Return once batches are in hand, with more of them waiting."""

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
