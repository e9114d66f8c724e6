"""Checks a sample of the legacy objects: whether they exist under the keys that the rows hold."""

import asyncio
import json
import re
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import unquote

from rowferry.batch import Entry
from rowferry.errors import AccessDenied, ObjectError, ObjectNotFound, SideFault
from rowferry.formatting import count
from rowferry.http import event_loop
from rowferry.keys import map_entry
from rowferry.plan import Entries, Side
from rowferry.s3.client import ObjectClient
from rowferry.s3.listings.keys import read_page
from rowferry.s3.operations import head_object, list_keys
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES, send_with_retries
from rowferry_enqueue.checks.buckets.bucket_errors import refuse, summarise_error
from rowferry_enqueue.checks.buckets.spellings import find_spelling
from rowferry_enqueue.checks.finding import Finding, fine, note, part, problem, quote_key

AT_ONCE = 16
FEW_LEFT = 10
"""Sampled entries of a begun migration: where fewer are left, those that are missing say nothing of the plan."""
TIME_LIMIT = timedelta(seconds=20)
"""After it, the rest of the sample is left out."""
MAX_COPIED_BYTES = 64 * 1024 * 1024
"""Of the legacy object that is copied as a test."""
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})


Result = Response | ObjectError


@dataclass(frozen=True, slots=True)
class Sample:
    """Some legacy entries of one [[entries]]."""

    entries: Entries
    sampled: tuple[Entry, ...]
    keys: tuple[tuple[str, str], ...]
    """The legacy keys of their objects, or folders, each with the production key that it becomes."""

    @classmethod
    def of(cls, entries: Entries, sampled: Sequence[Entry]) -> "Sample":
        """Return the required objects of sampled entries; those that name none are left to `check_keys`."""
        keys: list[tuple[str, str]] = []
        for entry in sampled:
            with suppress(ValueError):
                mapped = map_entry(entry, entries).objects
                keys += [(each.legacy, each.production) for each in mapped if each.is_required or entries.may_be_empty]
        return cls(entries, tuple(sampled), tuple(keys))


@dataclass(frozen=True, slots=True)
class SampledObjects:
    """The findings, the key of an object that is small enough to be copied as a test, if there is one, and HEADs."""

    findings: tuple[Finding, ...]
    small_key: str | None = None
    heads: dict[tuple[str, str], Response] = field(default_factory=dict[tuple[str, str], Response])
    """The HEAD of each object that is there, by its legacy key and the production key that it becomes."""


def check_objects(client: ObjectClient, side: Side, samples: Sequence[Sample], *, is_new: bool) -> SampledObjects:
    """Send a HEAD for the legacy object of each sample, or a listing of one key; `is_new`: it was never enqueued."""
    findings: list[Finding] = []
    sizes: dict[str, int] = {}
    folders = {key for sample in samples if sample.entries.names_folders for key, _ in sample.keys}
    results = event_loop.run(_ask_all(client, side, [key for sample in samples for key, _ in sample.keys], folders))
    for sample in samples:
        found = {key: results[key] for key, _ in sample.keys if key in results}
        sizes |= dict(_read_size(key, result) for key, result in found.items() if isinstance(result, Response))
        findings += _judge(client, side, sample.entries, found, is_new=is_new)
        findings += _tell_unseen(sample, found)
    keys = [keys for sample in samples if not sample.entries.names_folders for keys in sample.keys]
    heads = {each: found for each in keys if isinstance(found := results.get(each[0]), Response)}
    archived = {key for key, result in results.items() if isinstance(result, Response) and is_archived(result)}
    small = {key: size for key, size in sizes.items() if size <= MAX_COPIED_BYTES and key not in archived}
    return SampledObjects(tuple(findings), min(small, key=lambda key: small[key], default=None), heads)


def is_archived(seen: Response) -> bool:
    """Return whether an object has to be restored first. Source: Amazon S3 API Reference, HeadObject."""
    is_restored = 'ongoing-request="false"' in seen.headers.get("x-amz-restore", "")
    return seen.headers.get("x-amz-storage-class") in ARCHIVES and not is_restored


def find_any_object(client: ObjectClient, side: Side, prefixes: Sequence[str]) -> str | None:
    """Return the first listed object that begins with one of the prefixes and is small enough to be copied."""
    for prefix in dict.fromkeys(prefixes):
        key = list_first(client, side, prefix)
        with suppress(ObjectError):
            if key and (client.ask(head_object(side.name, key), tries=TRIES).content_length or 0) <= MAX_COPIED_BYTES:
                return key
    return None


def _read_size(key: str, result: Response) -> tuple[str, int]:
    """Return the key of an object, and its size; of a folder, that of its first object."""
    if not key.endswith("/") or not result.body:
        return key, result.content_length or 0
    (first,) = read_page(result).objects
    return first.key, int(first.size or 0)


async def _ask_all(client: ObjectClient, side: Side, keys: Sequence[str], folders: Container[str]) -> dict[str, Result]:
    """Return the result of a HEAD, or of the listing of a folder, without the keys whose turn has not come in time."""
    results: dict[str, Result] = {}
    room = asyncio.Semaphore(AT_ONCE)
    end = time.monotonic() + TIME_LIMIT.total_seconds()

    async def ask(key: str) -> None:
        async with room:
            if time.monotonic() > end:
                return
            try:
                results[key] = await (_find_in_folder if key in folders else _head)(client, side, key)
            except ObjectError as error:
                results[key] = error

    await asyncio.gather(*[ask(key) for key in dict.fromkeys(keys)])
    return results


async def _head(client: ObjectClient, side: Side, key: str) -> Response:
    return await send_with_retries(client.send, head_object(side.name, key))


async def _find_in_folder(client: ObjectClient, side: Side, prefix: str) -> Response:
    """Return the listing of the first object of a folder. Raises ObjectNotFound where it has none."""
    response = await send_with_retries(client.send, list_keys(side.name, prefix, max_keys=1))
    if not read_page(response).objects:
        raise ObjectNotFound("EmptyFolder", "the folder has no object")
    return response


def _tell_unseen(sample: Sample, seen: Container[str]) -> Iterator[Finding]:
    """Yield how much of a sample was not looked at, since the time was over."""
    unseen = sum(key not in seen for key in dict(sample.keys))
    if unseen:
        things = count(unseen, "sampled folder was", "sampled folders were")
        if not sample.entries.names_folders:
            things = count(unseen, "sampled legacy object was", "sampled legacy objects were")
        seconds = f"{TIME_LIMIT.total_seconds():g} s"
        yield note(f"{sample.entries.label}: {things} not looked at, since the legacy server took more than {seconds}")


def _judge(
    client: ObjectClient, side: Side, entries: Entries, results: dict[str, Result], *, is_new: bool
) -> Iterator[Finding]:
    if not results:
        return
    things = "sampled folders hold objects" if entries.names_folders else "sampled legacy objects exist"
    found = [key for key, result in results.items() if isinstance(result, Response)]
    missing = [key for key, result in results.items() if isinstance(result, ObjectNotFound)]
    refused = {key: result for key, result in results.items() if isinstance(result, ObjectError) and key not in missing}
    sampled = f"{entries.label}: {len(found):,} of {len(results):,} {things}"
    for error in refused.values():
        if isinstance(error, AccessDenied | SideFault) and not found:
            verb, right = ("listed", "") if entries.names_folders else ("read", "s3:GetObject and ")
            yield refuse(side, error, verb, f"{right}s3:ListBucket")
            return
    if refused:
        key, error = next(iter(refused.items()))
        yield part(
            f"{sampled}, {len(refused):,} requests failed, for example {quote_key(key)}: {summarise_error(error)}"
        )
    if not missing:
        if not refused:
            yield fine(sampled)
        return
    number, example = count(len(missing), "is", "are"), quote_key(missing[0])
    what = f"{sampled}, {number} missing, for example {example}"
    if entries.names_folders:
        what = f"{sampled}, {number} empty, for example {example}"
    if entries.may_be_empty and found:
        yield note(what)
        return
    spelling = "" if entries.names_folders else find_spelling(client, side, entries, missing)
    is_nearly_done = not is_new and len(results) < FEW_LEFT
    if not spelling and (2 * len(missing) <= len(results) or is_nearly_done):
        ends = "its entry ends" if len(missing) == 1 else "their entries end"
        more = "" if not entries.names_folders else ", unless the plan has `may_be_empty = true`"
        yield note(what, f"{ends} as missing{more}: see `rowferry errors` then")  # no setting would move them
        return
    cause = spelling or guess_cause(missing, list_first(client, side), entries)
    yield problem(what, cause) if is_new and not found else part(what, cause)


def guess_cause(missing: Sequence[str], existing: str | None, entries: Entries) -> str:
    """Return the probable reason why objects are missing, and what to write in the plan.

    `existing`: a key that the bucket does hold.
    """
    longer = next((key for key in missing if existing is not None and existing.endswith(f"/{key}")), None)
    holds = "" if existing is None else f"; the bucket does hold {quote_key(existing)}, for example"
    if entries.computes_objects:
        return f"`objects` may yield other keys than those of the bucket, or [legacy] names another bucket{holds}"
    if any(re.match(r"([a-z][a-z0-9+.-]*:)?//", key, re.IGNORECASE) for key in missing):
        return (
            "the column seems to hold URLs: put all of them that is no part of a key into `from`, and add "
            f'`legacy_object` and `production_object`, what the keys begin with instead, such as ""{holds}'
        )
    if missing[0].startswith("/"):
        words = "the keys begin with `/`, as object keys rarely do: put it into `from`, and add `legacy_object`"
        return f"{words} and `production_object` without it{holds}"
    if longer is not None and existing is not None:
        prefix = json.dumps(existing.removesuffix(longer) + entries.legacy_object_prefix, ensure_ascii=False)
        words = f"the objects' keys begin with more than the column holds, for example {quote_key(existing)}"
        return f"{words}: add `legacy_object = {prefix}` to the plan, and a `production_object`"
    if entries.encoding == "none" and any(unquote(key) != key for key in missing):
        words = "the keys in the column seem to be percent-encoded, which the objects' own keys are not"
        return f'{words}: add `encoding = "percent"` to the plan{holds}'
    remedy = "the column may not hold the whole key (a prefix outside the column goes into `legacy_object`)"
    return f"{remedy}, or [legacy] names another bucket{holds}"


def list_first(client: ObjectClient, side: Side, prefix: str = "") -> str | None:
    """Return the first key of a bucket that begins with `prefix`; None without one, or without the right to list."""
    try:
        keys = read_page(client.ask(list_keys(side.name, prefix, max_keys=1), tries=TRIES)).keys
        return next(iter(keys), None)
    except ObjectError:
        return None
