"""The sampled objects: each is copied in a dry run with the servers, and then without them until nothing is learned."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectNotFound
from rowferry.plan import Plan
from rowferry.s3.retry import Send
from rowferry_cli.estimate.dry_run import DryRun, Operation
from rowferry_queues.migrate.folders import is_listed_as_copied
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.copying.follow import follow
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring.heartbeat import ClusterState
from rowferry_worker.objects.requests import ObjectRequests, size_of

RequestCounts = Counter[Operation]
LEARNED_WITHIN = 40
"""Objects by which a worker knows its servers: it asks the first 20 that announce no tags for some."""
REPEATED = 1000
"""Objects of a large sample that are copied again, to see what the first ones cost once the servers are known."""


@dataclass(frozen=True, slots=True)
class SampledObject:
    """What a dry run has shown of the object of an entry."""

    size_bytes: int = 0
    outcome: Outcome = Outcome.MIGRATED
    requests: RequestCounts = field(default_factory=Counter[Operation])
    """Of a worker that knows its servers."""
    egress_bytes: int = 0
    """What the worker reads of it from the legacy side."""
    is_looked_at: bool = False
    """Whether it is asked for again before its row moves: the listing of a folder tells of most others in it."""
    is_tagged: bool = False
    has_multipart_etag: bool = False

    @property
    def written_bytes(self) -> int:
        """Return what the production side has more in the end."""
        return self.size_bytes if self.outcome is Outcome.MIGRATED else 0


class ObjectSample:
    """The sampled keys, and what was seen of each so far. Used on the event loop only, but for reading."""

    def __init__(self, plan: Plan, keys: Sequence[tuple[str, str]], in_folders: Container[int] = ()) -> None:
        """`keys`: legacy and production keys; `in_folders`: positions of those whose rows name a folder."""
        self._plan, self._keys, self._in_folders = plan, keys, in_folders
        self._options = self._make_options()
        self.method = self._options.method
        self.runs: dict[int, DryRun] = {}
        """The first dry run of each key that was looked at, by its position."""
        self.errors: dict[int, ObjectError] = {}
        """Of keys that could not be looked at."""
        self.received_bytes = 0
        self.objects: dict[int, SampledObject] = {}
        """Filled by `count`."""
        self.learning: RequestCounts = Counter()
        """What a worker sends more, or less, until it knows its servers."""

    def _make_options(self) -> CopyOptions:
        """Return how a worker that has learned nothing yet copies. What it learns here must not reach real copies."""
        options = MigrationContext(self._plan, {}, ClusterState()).copy_options("fail")
        options.support.confirms_digests = True  # so that nothing is hashed: bodies are not what they were
        return options

    @property
    def refusals(self) -> list[ObjectError]:
        """Return why it is not known of some objects whether they are in production: they count as new."""
        return [run.refusal for run in self.runs.values() if run.refusal is not None]

    async def look(self, send: Send, number: int) -> CopyResult:
        """Copy the object of one key in a dry run. Raises the ObjectError of one that cannot be copied."""
        position = number % len(self._keys)
        run = DryRun(send, self._keys[position], self.method)
        try:
            outcome, _ = await self._copy(run, position, self._options)
        except ObjectError as error:
            self.errors.setdefault(position, error)
            raise
        finally:
            self.received_bytes += run.received_bytes
        self.runs.setdefault(position, run)
        return CopyResult(outcome)

    async def _copy(self, run: DryRun, position: int, options: CopyOptions) -> tuple[Outcome, bool]:
        """Do with one object what a batch does with each, up to the look before its row moves; return whether it is."""
        s3, keys = ObjectRequests(run.send), self._keys[position]
        try:
            result = await copy_object(s3, options, *keys)
            is_looked_at = (
                bool(result.etag) and not self._plan.legacy.immutable and not self._is_told(run, position, result)
            )
            if is_looked_at:
                await follow(s3, options, *keys, result, may_copy=False)
        except ObjectNotFound as error:
            if error.code == "HTTP 404" and error.side == "legacy":  # looked for again, as judge_sides does
                await s3.find("legacy", keys[0])
            return Outcome.MISSING, False
        return result.outcome, is_looked_at

    def _is_told(self, run: DryRun, position: int, result: CopyResult) -> bool:
        """Return whether the listing of a folder shows that an object is still what was copied."""
        head = run.fact("legacy", "HeadObject")
        etag = result.source_etag or (head.etag if head is not None else None) or ""
        return position in self._in_folders and is_listed_as_copied(result, etag)

    async def count(self, all_objects: float, *, honours_condition: bool) -> None:
        """Count what a worker sends for each object that was looked at.

        `all_objects`: how many the migration has. The sample is gone through once, as its beginning; if there are more
        objects, the first ones are copied again, to tell what they cost from what was learned by them.
        """
        options, self.learning = self._make_options(), Counter()

        async def count_each(positions: Iterable[int]) -> RequestCounts:
            total: RequestCounts = Counter()
            for position in positions:
                self.objects[position] = await self._count_one(position, options, honours_condition=honours_condition)
            for position in positions:
                total.update(self.objects[position].requests)
            return total

        positions = sorted(self.runs)
        repeated, others = positions[:REPEATED], positions[REPEATED:]
        first = await count_each(repeated)
        await count_each(others)
        wanted = max(LEARNED_WITHIN, len(repeated))
        left = int(min(wanted + len(repeated) - 1, all_objects - len(positions)))
        later = [await count_each(repeated) for _ in range(left // max(1, len(repeated)))]
        for counts in [first, *later]:
            self.learning.update(counts)
            self.learning.subtract([first, *later][-1])

    async def _count_one(self, position: int, options: CopyOptions, *, honours_condition: bool) -> SampledObject:
        run = self.runs[position]
        run.repeat(honours_condition=honours_condition)
        try:
            outcome, is_looked_at = await self._copy(run, position, options)
        except ObjectError:
            outcome, is_looked_at = Outcome.FAILED, False
        head, tags = run.fact("legacy", "HeadObject"), run.fact("legacy", "GetObjectTagging")
        if head is None:
            return SampledObject(outcome=outcome, requests=run.requests)
        announces_tags = head.headers.get("x-amz-tagging-count", "0") != "0"
        return SampledObject(
            size_of(head),
            outcome,
            run.requests,
            run.egress_bytes,
            is_looked_at=is_looked_at,
            is_tagged=announces_tags or (tags is not None and b"<Key>" in tags.body),
            has_multipart_etag="-" in (head.etag or ""),
        )
