"""What objects, connections and payloads have in common, under kills: each form is a kind of its own."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from support.entries.entry_table import FROM, TO
from support.s3.objects import ObjectSide
from support.s3.outages import Outage, s3_error
from support.s3.proxy import Streams
from support.s3.request_log import read_body, read_request, read_whole_answer, send
from torture.bad_s3 import BadS3
from torture.final_checks import Expected
from torture.scenarios.scenario import Scenario, Size
from torture.world import World, key_of

FAILED = "select coalesce(sum(failed), 0)::int from rowferry.batch_queue where status = 'ERROR'"
PAUSED = "select count(*)::int from rowferry.migration where paused_at is not null"


class Killed(Scenario):
    """Workers are killed while the kind of a scenario is there."""

    faults = frozenset({"SIGKILL"})
    short, long = Size(2, 200, seats=2), Size(10, 800, seats=4)
    plan: ClassVar = {"migration": {"max_attempts": 50, "transfer": "stream"}}
    lives_seconds = 1.5
    """Between two kills lies up to this long, over all workers."""

    def cause(self) -> None:
        for number in range(self.times):
            pid = None
            while pid is None:
                self.keep_going()
                self.pause(self.lives_seconds)
                pid = self.kill_worker()
            self.say(f"{number + 1} of {self.times} killed; {self.world.waiting()} batches wait")

    def keep_going(self) -> None:
        """Add entries where few batches wait."""
        self.keep_busy(self.seats)

    def end(self) -> None:
        self.end_killed()


CUT_OFF = "select count(*)::int from rowferry.batch_attempt where verdict is null"


class Kills(Killed):
    what = "SIGKILL at random moments, over 8 workers that are replaced at once; server-side copies, then streamed ones"
    forms = ("server", "stream")
    short, long = Size(3, 200, seats=2), Size(100, 3000, seats=8)
    batch = 25
    large = None
    plan: ClassVar = {
        # A batch that was killed by chance so often is no poison.
        "migration": {"max_attempts": 50},
        # Slow enough for a kill to meet workers in the middle of a batch.
        "production": {"max_requests_per_second": 150},
    }
    lives_seconds = 1.2

    def choose_forms(self) -> Sequence[str]:
        return self.run.random.sample(self.forms, 1) if self.run.short else self.forms

    def keep_going(self) -> None:
        self.keep_busy(self.seats, self.entries // 6, large=1 + self.entries // 600)

    def end(self) -> None:
        super().end()
        self.count("batches cut off", self.world.ask(CUT_OFF))
        self.count("uploads cut off", len(self.world.migration.production.open_uploads()))


class Alike(Killed):
    what = "the first objects of all are denied, with workers killed: they fail by name, and the rest moves"
    faults = frozenset({"SIGKILL", "requests denied"})

    def make_proxy(self, world: World) -> BadS3:
        self.ids = range(1, self.entries // 3)
        denied = {key_of(number) for number in self.ids}
        self.s3 = BadS3(world.s3.endpoint_url, 0, {})
        self.s3.outage = Outage(lambda seen: seen.key in denied, s3_error(403, "AccessDenied"))
        return self.s3

    def check(self) -> None:
        self.count("requests denied", self.s3.counts["answered by something else"])
        if self.world.ask(PAUSED):
            self.report("objects that are alike have paused the migration")
        if (failed := self.world.ask(FAILED)) != len(self.ids):
            self.report(f"{failed} entries failed instead of {len(self.ids)}")
        super().check()

    def expect(self) -> Expected:
        return Expected({str(number) for number in self.ids}, error=lambda batch: batch["failed"] > 0)


class Unreadable(Killed):
    what = "batches whose payload no worker understands, in front of all others, with workers killed"
    faults = frozenset({"SIGKILL", "payloads that are not understood"})
    payloads: ClassVar[tuple[dict[str, Any], ...]] = (
        {"objects": "listing", "side": ["legacy"]},
        {"objects": 1, "side": {}},
    )
    insert = """
    insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts, run_after)
    select id, 'migrate', %s::jsonb, 1, 2, now() - interval '1 day' from rowferry.migration
    """

    def fill(self) -> None:
        super().fill()
        for payload in self.payloads:
            self.world.migration.execute(self.insert, [json.dumps(payload)])

    def check(self) -> None:
        self.count("payloads that are not understood", self.world.ask(FAILED))
        if self.world.ask(FAILED) != len(self.payloads) or self.world.ask(PAUSED):
            self.report("other than the batches that are not understood failed, or the migration was paused")
        super().check()

    def expect(self) -> Expected:
        return Expected(
            error=lambda batch: batch["payload"] in self.payloads,
            sum_of_entries=self.world.entries + len(self.payloads),
        )


class DropsTags(BadS3):
    """A server whose CopyObject brings no tags along, and which takes those that are put."""

    def __init__(self, endpoint_url: str, drop: Callable[[str], None]) -> None:
        super().__init__(endpoint_url, 0, {})
        self._drop = drop

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay one request and its answer; take the tags of a copy away before it is answered."""
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        server[1].write(head + await read_body(seen.headers, client[0]))
        answer = await read_whole_answer(seen, server[0])
        if "x-amz-copy-source" in seen.headers and not seen.query:
            await asyncio.to_thread(self._drop, seen.key)
            self.counts["copies without tags"] += 1
        return await send(client, b"".join(answer))


class DroppedTags(Killed):
    what = "a server drops the tags that a copy should bring along, with workers killed: every object has its own"
    faults = frozenset({"SIGKILL", "copies without tags"})
    plan: ClassVar = {"migration": {"max_attempts": 50, "transfer": "server"}}
    tagged_each = 3

    def make_proxy(self, world: World) -> DropsTags:
        self.s3 = DropsTags(world.s3.endpoint_url, self.drop)
        return self.s3

    def drop(self, key: str) -> None:
        production = self.world.migration.production
        production.client.delete_object_tagging(Bucket=production.bucket, Key=key)

    def fill(self) -> None:
        """Give some objects tags of their own."""
        world, self.tags = self.world, dict[str, str]()
        world.fill(self.entries, large=0)
        for number in range(1, self.entries + 1, self.tagged_each):
            self.tags[key_of(number)] = str(number)
            legacy, tag = world.migration.legacy, {"Key": "number", "Value": str(number)}
            legacy.client.put_object_tagging(Bucket=legacy.bucket, Key=key_of(number), Tagging={"TagSet": [tag]})
        world.legacy_record.take(self.tags)
        world.enqueue(self.batch)

    def check(self) -> None:
        """Hold the tags of every object against those of its legacy object."""
        self.run.faults.update(self.s3.counts)
        for key, value in self.tags.items():
            if (found := read_tags(self.world.migration.production, key.replace(FROM, TO, 1))) != {"number": value}:
                self.report(f"the tags of {key!r} are {found} instead of {value!r}")
        super().check()


def read_tags(side: ObjectSide, key: str) -> dict[str, str]:
    found = side.client.get_object_tagging(Bucket=side.bucket, Key=key)
    return {tag["Key"]: tag["Value"] for tag in found["TagSet"]}
