"""The last step of a run: a listing tells which legacy objects were rewritten after their copy; these are repaired."""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rowferry.errors import RowferryError
from rowferry.formatting import count
from rowferry.keys import map_object
from rowferry.plan import Entries, Plan
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.clocks import UPLOAD_SPAN, read_date
from rowferry.s3.listings.keys import PAGE_KEYS, ListedObject, Walk
from rowferry.s3.operations import head_bucket
from rowferry.s3.retry import TRIES
from rowferry_cli.clocks import measure_clocks
from rowferry_cli.migrate.passes import Run
from rowferry_cli.throughput import Throughput
from rowferry_enqueue.checks.buckets.taken_keys import Keys, compare_objects
from rowferry_enqueue.enqueue import EnqueueRequest, Within
from rowferry_queues.verify.spec import VERIFY, VerifyChoices

DENSE = 4
"""So many objects may begin with a prefix for each entry of the run; else their listing would tell little."""
MOST_PAGES = 2000
"""Of the listing of a prefix, one after the other: some three minutes."""
MOST_COMPARED = 5000
"""Objects that were written during the run and are compared, by one HEAD on either side."""
SPAN = timedelta(seconds=2)
"""How long before the run an object may have been written that counts as written during it: times are in seconds."""
REMAINS = (
    "Legacy objects that were rewritten less than 2 s before their rows moved were not looked for ({why}): "
    "`rowferry verify --repair` finds them."
)


class _Unknown(Exception):
    """A listing cannot tell what was rewritten; the message says why."""


@dataclass(frozen=True, slots=True)
class LastListing:
    """Looks for what was rewritten since it was made."""

    plan: Plan
    began: datetime | None
    """By the legacy server's own clock; None: it does not tell."""

    @classmethod
    def begin(cls, plan: Plan) -> "LastListing":
        """Ask for the time before the first pass begins, where objects may be rewritten behind rows that move."""
        if plan.legacy.immutable or not _list_moved(plan):
            return cls(plan, None)
        try:
            with closing(open_object_client(plan.legacy)) as client:
                return cls(plan, read_date(client.ask(head_bucket("legacy"), tries=TRIES).headers))
        except RowferryError:
            return cls(plan, None)

    def repair(self, run: Run, done: Sequence[Throughput]) -> int:
        """Verify and repair what differs by now from its copy; return how much of that is left.

        Rows that stay are compared in each pass. `done`: what the run has done.
        """
        moved = _list_moved(self.plan)
        copied = sum(each.counts.migrated for each in done)
        if self.plan.legacy.immutable or not moved or not copied:
            return 0
        if getattr(run.request.choices, "on_conflict", None) == "keep":
            run.reporter.print(REMAINS.format(why="different objects in production were to be kept"))
            return 0
        try:
            with run.reporter.show_activity("looking for objects that were rewritten during the run") as on_progress:
                pairs = {entries.label: list(self._find_written(entries, copied)) for entries in moved}
                if sum(map(len, pairs.values())) > MOST_COMPARED:
                    raise _Unknown(f"more than {MOST_COMPARED:,} objects were written during the run")
                every = list({keys for each in pairs.values() for keys in each})
                compared = compare_objects(self.plan, every, on_progress) if every else {}
        except (_Unknown, RowferryError) as error:
            run.reporter.print(REMAINS.format(why=str(error).rstrip(".")))
            return 0
        other = {keys for keys, found in compared.items() if found.likeness in {"different", "undecided"}}
        return sum(
            self._verify(run, label, tuple(old for old, new in each if (old, new) in other))
            for label, each in pairs.items()
            if not other.isdisjoint(each)
        )

    def _find_written(self, entries: Entries, copied: int) -> Iterator[Keys]:
        """Yield the keys of objects that were written during the run, or may have been."""
        if self.began is None:
            raise _Unknown("the legacy server did not tell the time")
        if entries.names_folders:
            raise _Unknown(f"{entries.label} names folders")
        since = {False: self.began - SPAN, True: self.began - timedelta(seconds=UPLOAD_SPAN)}
        with closing(open_object_client(self.plan.legacy)) as client:
            for listed in _list(client, entries.legacy_object_prefix, DENSE * copied // PAGE_KEYS + 1):
                if _read_time(listed) >= since["-" in listed.etag]:
                    with suppress(ValueError):  # no row can name it
                        keys = map_object(listed.key, entries)
                        yield keys.legacy, keys.production

    def _verify(self, run: Run, label: str, keys: tuple[str, ...]) -> int:
        """Repair the objects of the rows that name these legacy keys, and return how many are left."""
        reporter = run.reporter
        found = count(len(keys), "legacy object", "legacy objects")
        reporter.print(f"{found} of {label} may have been rewritten after the copy:")
        choices = VerifyChoices(repair="older", skew=measure_clocks(self.plan, reporter))
        # Of one row each, since a batch reads all rows between its first and its last.
        request = EnqueueRequest(VERIFY, 1, choices=choices, within=Within(label, keys=keys))
        done = replace(run, request=request).one_pass()
        reporter.report_outcomes(done)
        return sum(each.counts.unsettled for each in done)


def _list_moved(plan: Plan) -> list[Entries]:
    return [entries for entries in plan.entries if entries.rows == "move"]


def _list(client: ObjectClient, prefix: str, most_pages: int) -> Iterator[ListedObject]:
    """Yield the objects of a prefix. Raises _Unknown where they take more pages, RowferryError where none is listed."""
    walk = Walk("legacy", prefix)
    for _ in range(min(most_pages, MOST_PAGES)):
        yield from walk.take(client.ask(walk.next_request(), tries=TRIES)).objects
        if walk.is_over:
            return
    few = "this run has copied few" if most_pages < MOST_PAGES else f"there are more than {MOST_PAGES * PAGE_KEYS:,}"
    raise _Unknown(f"of the objects whose keys begin with {prefix!r}, {few}")


def _read_time(listed: ListedObject) -> datetime:
    """Return when an object was written. Raises _Unknown where the listing does not tell."""
    try:
        written = datetime.fromisoformat(listed.modified)
    except ValueError:
        raise _Unknown("the listing of the legacy bucket tells no times") from None
    return written if written.tzinfo else written.replace(tzinfo=UTC)
