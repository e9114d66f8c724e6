"""The check of the entries' own objects: some of them are looked at, over the client that works."""

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
from rowferry.plan import Side
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import head_object, list_first_object
from rowferry.s3.responses import Answer, read_text
from rowferry_enqueue.check_keys import quote_key
from rowferry_enqueue.finding import Finding, fine, note, problem
from rowferry_enqueue.samples import Sample
from rowferry_enqueue.side_findings import refuse, word_error

THREADS = 16
WITHIN = timedelta(seconds=20)
"""What has not been asked for by then is left out."""
MAX_COPIED_BYTES = 64 * 1024 * 1024
"""The largest legacy object that is copied for a try."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found, and a legacy object that is small enough to be copied for a try, if there is one."""

    findings: tuple[Finding, ...]
    small_key: str | None = None


def check_objects(client: ObjectClient, side: Side, samples: Sequence[Sample], *, is_new: bool) -> Looked:
    """Ask for the legacy objects of the samples; `is_new`: nothing of this migration was ever enqueued."""
    findings: list[Finding] = []
    sizes: dict[str, int] = {}
    ask = partial(_ask, client, side, time.monotonic() + WITHIN.total_seconds())
    with ThreadPoolExecutor(THREADS, "rowferry-head") as pool:
        for sample in samples:
            keys = [legacy_key for legacy_key, _ in sample.keys]
            answers = dict(zip(keys, pool.map(ask, keys), strict=True))
            sizes |= {key: answer.content_length or 0 for key, answer in answers.items() if answer and not answer.error}
            findings += _judge(client, side, sample.entries.label, answers, is_new=is_new)
    small = {key: size for key, size in sizes.items() if size <= MAX_COPIED_BYTES}
    return Looked(tuple(findings), min(small, key=lambda key: small[key], default=None))


def find_any_object(client: ObjectClient, side: Side, prefixes: Sequence[str]) -> str | None:
    """Return the first listed object that begins with one of the prefixes and is small enough to be copied."""
    for prefix in dict.fromkeys(prefixes):
        key = _list_first(client, side, prefix)
        answer = client.ask(head_object(side.name, key)) if key else None
        if answer and not answer.error and (answer.content_length or 0) <= MAX_COPIED_BYTES:
            return key
    return None


def _ask(client: ObjectClient, side: Side, end: float, key: str) -> Answer | None:
    """Return the answer to a HEAD; None where time is over."""
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
    looked = f"{label}: {len(found):,} of {len(asked):,} sampled legacy objects are there"
    for error in refused.values():
        if isinstance(error, AccessDenied | SideFault) and not found and not missing:
            yield refuse(side, error, "read", "s3:GetObject and s3:ListBucket")
            return
    if refused:
        key, error = next(iter(refused.items()))
        yield note(f"{looked}, {len(refused):,} did not say, for example {quote_key(key)}: {word_error(error)}")
    if not missing:
        if not refused:
            yield fine(looked)
        return
    words = f"{looked}, {count(len(missing), 'is', 'are')} missing, for example {quote_key(missing[0])}"
    if 2 * len(missing) <= len(asked):
        yield note(words, "their entries will end as missing: see `rowferry errors` then")
        return
    cause = guess_cause(missing, _list_first(client, side))
    yield problem(words, cause) if is_new and not found else note(words, cause)


def guess_cause(missing: Sequence[str], stands: str | None) -> str:
    """Return what may be why objects are missing, as what to do; `stands` is a key that the bucket does hold."""
    first = missing[0]
    if any(re.match(r"([a-z][a-z0-9+.-]*:)?//", key, re.IGNORECASE) for key in missing):
        return "the column seems to hold URLs: rowferry needs the object's own key in it, from its first character on"
    if first.startswith("/"):
        return "the keys begin with `/`, which objects' keys hardly do: correct the column, or `key` in the plan"
    if stands is not None and any(stands.endswith(f"/{key}") for key in missing):
        return f"the objects' keys begin with more than the column holds, for example {quote_key(stands)}"
    holds = "" if stands is None else f"; the bucket does hold {quote_key(stands)}, for example"
    if any(unquote(key) != key for key in missing):
        return f"the keys in the column seem to be percent-encoded, which the objects' own keys are not{holds}"
    remedy = "the column may not hold the whole key (a prefix outside the column), or [legacy] names another bucket"
    return f"{remedy}{holds}"


def _list_first(client: ObjectClient, side: Side, prefix: str = "") -> str | None:
    """Return the first key of a bucket that begins with `prefix`; None without one, or without the right to list."""
    answer = client.ask(list_first_object(side.name, prefix))
    return None if answer.error else read_text(answer.body, "Key") or None
