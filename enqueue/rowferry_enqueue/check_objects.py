"""Checks a sample of the legacy objects: whether they exist under the keys that the rows hold."""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import unquote

from rowferry.errors import AccessDenied, ObjectNotFound, ObjectRejected, SideFault
from rowferry.formatting import count
from rowferry.plan import Entries, Side
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import head_object, list_first_object
from rowferry.s3.responses import Answer, read_text
from rowferry_enqueue.bucket_errors import refuse, summarise_error
from rowferry_enqueue.check_keys import quote_key
from rowferry_enqueue.finding import Finding, fine, note, problem

THREADS = 16
TIME_LIMIT = timedelta(seconds=20)
"""After it, the rest of the sample is left out."""
MAX_COPIED_BYTES = 64 * 1024 * 1024
"""Of the legacy object that is copied as a test."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Legacy keys of one [[entries]], each with the production key that it becomes."""

    entries: Entries
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SampledObjects:
    """The findings, and the key of an object that is small enough to be copied as a test, if there is one."""

    findings: tuple[Finding, ...]
    small_key: str | None = None


def check_objects(client: ObjectClient, side: Side, samples: Sequence[Sample], *, is_new: bool) -> SampledObjects:
    """Send a HEAD for the legacy object of each sample; `is_new`: the migration was never enqueued."""
    findings: list[Finding] = []
    sizes: dict[str, int] = {}
    ask = partial(_ask, client, side, time.monotonic() + TIME_LIMIT.total_seconds())
    with ThreadPoolExecutor(THREADS, "rowferry-head") as pool:
        for sample in samples:
            keys = [legacy_key for legacy_key, _ in sample.keys]
            answers = dict(zip(keys, pool.map(ask, keys), strict=True))
            sizes |= {key: answer.content_length or 0 for key, answer in answers.items() if answer and not answer.error}
            findings += _judge(client, side, sample.entries.label, answers, is_new=is_new)
    small = {key: size for key, size in sizes.items() if size <= MAX_COPIED_BYTES}
    return SampledObjects(tuple(findings), min(small, key=lambda key: small[key], default=None))


def find_any_object(client: ObjectClient, side: Side, prefixes: Sequence[str]) -> str | None:
    """Return the first listed object that begins with one of the prefixes and is small enough to be copied."""
    for prefix in dict.fromkeys(prefixes):
        key = _list_first(client, side, prefix)
        answer = client.ask(head_object(side.name, key)) if key else None
        if answer and not answer.error and (answer.content_length or 0) <= MAX_COPIED_BYTES:
            return key
    return None


def _ask(client: ObjectClient, side: Side, end: float, key: str) -> Answer | None:
    """Return the response to a HEAD; None after the time limit."""
    if time.monotonic() > end:
        return None
    try:
        request = head_object(side.name, key)
    except ObjectRejected as error:
        return Answer(0, error=error)
    return client.ask(request)


def _judge(
    client: ObjectClient, side: Side, label: str, answers: dict[str, Answer | None], *, is_new: bool
) -> Iterator[Finding]:
    asked = {key: answer for key, answer in answers.items() if answer is not None}
    if not asked:
        return
    found = [key for key, answer in asked.items() if answer.error is None]
    missing = [key for key, answer in asked.items() if isinstance(answer.error, ObjectNotFound)]
    refused = {key: answer.error for key, answer in asked.items() if answer.error and key not in missing}
    sampled = f"{label}: {len(found):,} of {len(asked):,} sampled legacy objects exist"
    for error in refused.values():
        if isinstance(error, AccessDenied | SideFault) and not found and not missing:
            yield refuse(side, error, "read", "s3:GetObject and s3:ListBucket")
            return
    if refused:
        key, error = next(iter(refused.items()))
        yield note(
            f"{sampled}, {len(refused):,} requests failed, for example {quote_key(key)}: {summarise_error(error)}"
        )
    if not missing:
        if not refused:
            yield fine(sampled)
        return
    what = f"{sampled}, {count(len(missing), 'is', 'are')} missing, for example {quote_key(missing[0])}"
    if 2 * len(missing) <= len(asked):
        yield note(what, "their entries will end as missing: see `rowferry errors` then")
        return
    cause = guess_cause(missing, _list_first(client, side))
    yield problem(what, cause) if is_new and not found else note(what, cause)


def guess_cause(missing: Sequence[str], existing: str | None) -> str:
    """Return the probable reason why objects are missing; `existing`: a key that the bucket does hold."""
    first = missing[0]
    if any(re.match(r"([a-z][a-z0-9+.-]*:)?//", key, re.IGNORECASE) for key in missing):
        return "the column seems to hold URLs: rowferry needs the object's own key in it, from its first character on"
    if first.startswith("/"):
        return "the keys begin with `/`, as object keys rarely do: correct the column, or `key` in the plan"
    if existing is not None and any(existing.endswith(f"/{key}") for key in missing):
        return f"the objects' keys begin with more than the column holds, for example {quote_key(existing)}"
    holds = "" if existing is None else f"; the bucket does hold {quote_key(existing)}, for example"
    if any(unquote(key) != key for key in missing):
        return f"the keys in the column seem to be percent-encoded, which the objects' own keys are not{holds}"
    remedy = "the column may not hold the whole key (a prefix outside the column), or [legacy] names another bucket"
    return f"{remedy}{holds}"


def _list_first(client: ObjectClient, side: Side, prefix: str = "") -> str | None:
    """Return the first key of a bucket that begins with `prefix`; None without one, or without the right to list."""
    answer = client.ask(list_first_object(side.name, prefix))
    return None if answer.error else read_text(answer.body, "Key") or None
