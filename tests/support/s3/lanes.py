"""Runs copies in lanes, or each in a task, against a server that misbehaves; tells what came of them."""

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from botocore.credentials import Credentials

from rowferry.http import event_loop
from rowferry.plan import LegacySide, ProductionSide, Side, SideName
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request, head_object
from rowferry.s3.responses import Response
from rowferry_worker.copying.copy import CopyResult, copy_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.scheduling.copy_run import CopyRun, ObjectResult
from rowferry_worker.scheduling.lanes import PlainCopies
from rowferry_worker.scheduling.scheduler import CopyScheduler, RequestPace
from support.s3.clients import WAIT_SECONDS, opened
from support.s3.copies import options_of
from support.s3.fake_s3 import endpoint_at
from support.s3.scenarios import Scenario
from support.s3.stand_in import Behaviour, StandIn, answer, keep_silent

DIGEST = "9a0364b9e99bb480dd25e1f0284c8555"
COPIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<CopyObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<LastModified>2026-11-27T08:00:00.000Z</LastModified><ETag>&quot;%s&quot;</ETag></CopyObjectResult>"
) % DIGEST.encode()
HEADERS: dict[str, Any] = {"x-amz-request-id": "A1", "Server": "stand-in", "Date": "Fri, 27 Nov 2026 08:00:00 GMT"}
USUAL: Behaviour = answer(200, COPIED, **HEADERS)
FOUND: Behaviour = answer(200, b"", ETag=f'"{DIGEST}"', Last_Modified="Fri, 27 Nov 2026 07:00:00 GMT", **HEADERS)
"""As a HEAD is answered."""
TESTS = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Seen:
    """What has come of objects: results by key, in words; what was counted; what was sent."""

    results: dict[str, str]
    counts: Counter[tuple[SideName, str, str]]
    sent: list[str]
    connections: int


def ask_again_at_once(key: str, bound: object) -> timedelta:
    """Take a turn without a wait, also after a refusal."""
    del key, bound
    return timedelta(0)


class Copier:
    """Two clients of one server, and what copies with them."""

    def __init__(self, server: StandIn, clients: dict[SideName, ObjectClient], most: int) -> None:
        self.server, self.clients = server, clients
        self.scheduler = CopyScheduler(most, most)
        self.scheduler.tally.flush = lambda: None
        self.scheduler.reserve = ask_again_at_once
        self.s3 = ObjectRequests(self._send, RequestPace(self.scheduler, {}, {"legacy": "old", "production": "new"}))
        self.options = options_of(ServerCopy("legacy"), "supported")
        self.results: dict[str, ObjectResult] = {}

    async def _send(self, request: Request) -> Response:
        return await self.clients[request.side].send(request)

    async def warm_up(self) -> None:
        """Open a connection that a lane may take."""
        await self.clients["production"].send(head_object("production", "warm-up"))

    def plan(self, keys: Iterable[str]) -> PlainCopies:
        """Return what lanes do."""
        plain = self.options.method.plain_copy
        assert plain is not None
        targets = {key: f"new/{key}" for key in keys}
        is_there = replace(self.options, looks_first=True)
        return PlainCopies(
            self.clients["production"],
            "new CopyObject",
            plain,
            targets,
            lambda key: copy_object(self.s3, is_there, key, targets[key]),
        )

    async def copy(self, key: str) -> CopyResult:
        """Do it in a task."""
        return await copy_object(self.s3, self.options, key, f"new/{key}")

    def run(self, keys: Sequence[str], *, in_lanes: bool, **more: Any) -> CopyRun:
        """Return the run of these keys."""
        more.setdefault("find_usual", lambda: self.plan(keys) if in_lanes and self.options.plain_copy else None)
        return CopyRun(self.scheduler, self.copy, keys, **more)

    def seen(self, results: dict[str, ObjectResult]) -> Seen:
        """Return what has come of them."""
        sent = [line for line in self.server.request_lines if "warm-up" not in line]
        words = {key: describe(result) for key, result in results.items()}
        return Seen(
            words,
            Counter({name: len(seconds) for name, seconds in self.scheduler.tally._requests.items()}),
            sent,
            len(self.server._connections),
        )


def describe(result: ObjectResult) -> str:
    if isinstance(result, CopyResult):
        return f"{result.outcome} {result.etag} {result.source_etag}"
    return f"{type(result).__name__} {result.code} {result.status} {result.side} {result.operation} {result.where}"


@contextmanager
def copying(
    judge: Callable[[str], Behaviour], *, most: int = 1, deadline: timedelta = timedelta(seconds=90)
) -> Iterator[Copier]:
    """What copies objects of a server that behaves as `judge` says of the head of each request."""

    def behave(head: str) -> Behaviour:
        return answer(200) if "warm-up" in head else judge(head)

    with StandIn().judging(behave) as server:
        url = server.endpoint_url
        sides: tuple[Side, Side] = LegacySide("legacy", endpoint_url=url), ProductionSide("prod", endpoint_url=url)
        settings: Any = {"endpoint": endpoint_at(url), "deadline": deadline, "max_in_flight": most}
        keys = Credentials("AK", "SK")
        with opened(sides[0], keys, **settings) as legacy, opened(sides[1], keys, **settings) as production:
            yield Copier(server, {"legacy": legacy, "production": production}, most)


def copy_facing(first: Iterable[Behaviour], *, in_lanes: bool) -> Seen:
    """Copy two objects: what the requests are answered first, then as usual."""
    rest = iter(first)

    def judge(head: str) -> Behaviour:
        return next(rest, USUAL) if head.startswith("PUT") else FOUND

    with copying(judge, deadline=timedelta(seconds=1.5)) as copier:

        async def work() -> Seen:
            await copier.warm_up()
            return copier.seen(await copier.run(("a", "b"), in_lanes=in_lanes).run_all())

        return event_loop.run(work(), timedelta(seconds=WAIT_SECONDS))


def collect_behaviours() -> dict[str, Behaviour]:
    """Return what servers do in the tables of tests/http and tests/s3, by a name, but for what never ends."""
    found: dict[str, Behaviour] = {}
    for path in ("http/test_http_client.py", "s3/test_s3_results.py", "s3/test_object_client.py"):
        module = _load(TESTS / path)
        for name, table in vars(module).items():
            if isinstance(table, dict) and all(isinstance(each, Scenario) for each in table.values()):
                found |= {
                    f"{each}, {number}": behaviour
                    for each, scenario in table.items()
                    for number, behaviour in enumerate(scenario.server)
                }
            elif name == "MISBEHAVIOURS":
                found |= {f"misbehaviour {number}": behaviour for number, (_, behaviour, _) in enumerate(table)}
            elif name in {"CONFIRMED", "UNCONFIRMED"}:
                found |= {f"{name} {n}": answer(200, response.body) for n, (_, response, *_) in enumerate(table)}
    return {name: behaviour for name, behaviour in found.items() if behaviour is not keep_silent}


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tables_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
