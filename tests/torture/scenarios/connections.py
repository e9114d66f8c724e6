"""The connections between workers and both servers are slow, reset, silent, or slow to close."""

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.processes.processes import wait_for
from torture.scenarios.scenario import Scenario, Size
from torture.symptoms import CLOSE_DELAY, LATENCY, SYMPTOMS, feel
from torture.toxiproxy import Toxiproxy, find_toxiproxy, running_toxiproxy
from torture.world import World

TOXICS: dict[str, tuple[str, dict[str, int]]] = {
    "slow connections": ("latency", LATENCY),
    "resets": ("reset_peer", {"timeout": 50}),
    "silences": ("timeout", {"timeout": 0}),
    "slow closes": ("slow_close", CLOSE_DELAY),
    "cut-offs in mid-stream": ("limit_data", {"bytes": 20_000}),
    "streams in small pieces": ("slicer", {"average_size": 64, "size_variation": 32, "delay": 100}),
}
SHORT = ("slow connections", "resets", "silences", "slow closes")
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


class Connections(Scenario):
    what = "toxiproxy between workers and both servers: latency, resets, silence, slow close, narrow and cut-up streams"
    faults = frozenset(SHORT)
    short = long = Size(1, 400)
    within = timedelta(seconds=90)

    def why_not(self) -> str | None:
        missing = "toxiproxy is not here: `make torture` builds it where `go` is installed"
        return None if find_toxiproxy() else missing

    def build(self, until: ExitStack) -> World:
        """Let only the workers reach both servers through toxiproxy."""
        program = find_toxiproxy()
        assert program is not None
        toxiproxy, world = until.enter_context(running_toxiproxy(program)), super().build(until)
        known = conninfo_to_dict(world.migration.dsn)
        upstreams = {"s3": urlsplit(world.s3.endpoint_url).netloc, "postgresql": f"{known['host']}:{known['port']}"}
        self.lines = [Line(name, toxiproxy, toxiproxy.add_proxy(name, where)) for name, where in upstreams.items()]
        s3, postgres = (line.address for line in self.lines)
        host, port = postgres.rsplit(":", 1)
        world.environment["DATABASE_URL"] = make_conninfo(world.migration.dsn, host=host, port=port)
        world.migration.reach_through(f"http://{s3}")
        return world

    def cause(self) -> None:
        """Spoil the connections to one server, then to the other, in each of the ways; see that the work goes on."""
        for line in self.lines:
            for fault in SHORT if self.run.short else TOXICS:
                self.say(f"{line.server}: {fault}")
                for _ in range(TRIES):
                    self.be_busy()
                    if self.is_met(line, fault):
                        self.count(fault)
                        break
                self.wait_for_progress()

    def is_met(self, line: Line, fault: str) -> bool:
        """Spoil the connections to a server for a while, while batches are claimed; return whether it was seen.

        Bytes that a fault swallows are those of workers: only `feel` also takes this way, where no bytes are lost.
        """
        kind, attributes = TOXICS[fault]
        before = line.toxiproxy.swallowed_bytes(line.server)
        with line.toxiproxy.toxic(line.server, kind, **attributes):
            time.sleep(self.run.random.uniform(1, 2) if self.run.short else self.run.random.uniform(5, 10))
            if fault in SYMPTOMS:
                self.be_busy()  # what lets all bytes through lets workers finish what they had
                return SYMPTOMS[fault](feel(line.server, line.address))
            if fault == "silences" and line.server == "s3" and not self.run.short:
                self.see_release()
        with suppress(AssertionError):
            wait_for(lambda: line.toxiproxy.swallowed_bytes(line.server) > before, deadline=COUNTED_WITHIN)
            return True
        return False

    def be_busy(self) -> None:
        """Return once batches are claimed and more are waiting."""

        def is_busy() -> bool:
            self.keep_busy(4 * self.seats, 400, large=1)
            return bool(self.world.query(IN_HAND))

        self.wait_for(is_busy)

    def see_release(self) -> None:
        """Report batches that workers hold for longer than they may while no server answers."""
        held = [row["id"] for row in self.world.query(IN_HAND)]
        try:
            wait_for(lambda: self.world.ask(STILL_IN_HAND, held) == 0, deadline=RELEASED_WITHIN)
        except AssertionError:
            self.report(f"of {len(held)} attempts, {self.world.ask(STILL_IN_HAND, held)} wait for S3 for ever")
