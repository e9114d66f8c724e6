"""The queue `verify`: hold each production entry's object against its legacy object, and repair it where asked to."""

from collections.abc import Mapping

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.entries import EntrySql
from rowferry.errors import ObjectNotFound, Withdrawn
from rowferry.keys import legacy_key
from rowferry.plan import Entries
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.entries import Form, find_entry_sql, read_range
from rowferry_worker.batch.rows import find_excused
from rowferry_worker.monitoring.verbose import watch_journey
from rowferry_worker.objects.journey import Copied
from rowferry_worker.objects.scheduler import Ended
from rowferry_worker.objects.travel import travel
from rowferry_worker.objects.verify import Demand, Different, examine

FORM: Form = "production"


def perform(context: BatchContext) -> list[EntryResult]:
    """Examine the objects of the production entries of the batch's range; return one result for each of them."""
    entries = read(context)
    entry_sql = find_entry_sql(context)
    ends = examine_objects(context, [entry.key for entry in entries], entry_sql.entries)
    started = context.leave_unstarted(entries, lambda entry: not isinstance(ends[entry.key], Withdrawn))
    return look_again(context, entry_sql, judge_entries(started, ends))


def read(context: BatchContext) -> list[Entry]:
    """Return the entries of the batch's range that are production, in the order of their ids."""
    return read_range(context, FORM)


def examine_objects(context: BatchContext, keys: list[str], plan: Entries) -> dict[str, Ended]:
    """Examine the object of each key, many at once, and return how each journey ended."""
    payload = context.batch.payload
    demand = Demand(payload.get("deep", False), payload.get("repair", "nothing"))
    way = context.route.way("fail")
    journeys = {key: examine(way, find_legacy_key(key, plan), key, demand) for key in keys}
    return travel(context, {key: watch_journey(journey, key, key) for key, journey in journeys.items()})


def find_legacy_key(key: str, plan: Entries) -> str | None:
    """Return the legacy key that a production key comes from; None when no legacy key can become it."""
    try:
        return legacy_key(key, plan)
    except ValueError:
        return None


def judge_entries(entries: list[Entry], ends: Mapping[str, Ended]) -> list[EntryResult]:
    """Return the results of the entries. Several may point at one object: it was repaired for the first of them."""
    results: list[EntryResult] = []
    repaired: set[str] = set()
    for entry in entries:
        end = ends[entry.key]
        if not isinstance(end, Copied):
            results.append(EntryResult.from_error(entry, end, _outcome_of(end)))
        elif entry.key in repaired:
            results.append(EntryResult(entry, Outcome.KEPT))
        else:
            results.append(EntryResult(entry, end.outcome, end.size_bytes))
            repaired.add(entry.key)
    return results


def look_again(context: BatchContext, entry_sql: EntrySql, results: list[EntryResult]) -> list[EntryResult]:
    """Return the results, but for rows that no longer hold the key: what became of its object is not theirs."""
    unsettled = [result.entry for result in results if not result.outcome.settled]
    excused = find_excused(context.connection, entry_sql, unsettled)
    return [excused.get(result.entry.id, result) for result in results]


def _outcome_of(error: Ended) -> Outcome:
    if isinstance(error, ObjectNotFound):
        return Outcome.MISSING
    return Outcome.CONFLICT if isinstance(error, Different) else Outcome.FAILED
