"""The check of the buckets: the legacy one can be listed and read, the production one written, copies arrive."""

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from rowferry.credentials import load_credentials
from rowferry.errors import AccessDenied, BucketNotFound, PreconditionFailed, RowferryError
from rowferry.object_count import OnProgress
from rowferry.object_store import Bucket, open_bucket
from rowferry.plan import Plan, Side
from rowferry_enqueue.finding import Finding, fine, note, problem

MAX_COPIED_BYTES = 64 * 1024 * 1024
"""The largest legacy object that is copied for a try."""


def check_buckets(plan: Plan, on_progress: OnProgress) -> Iterator[Finding]:
    """Yield what trying shows: reading on the legacy side, one probe object on the production side."""
    on_progress("reading the legacy bucket")
    findings, source_key = _try_legacy(plan)
    yield from findings
    on_progress("writing to the production bucket")
    yield from _try_production(plan, source_key)


def _try_legacy(plan: Plan) -> tuple[list[Finding], str | None]:
    """Return what was found, and a legacy object that is small enough to be copied for a try, if there is one."""
    side = plan.legacy
    try:
        with open_bucket(side, load_credentials(side, os.environ)) as bucket:
            bucket.check_exists()
            prefixes = list(dict.fromkeys(entries.legacy_prefix for entries in plan.entries))
            key = next((key for prefix in prefixes if (key := bucket.first_key(prefix)) is not None), None)
            if key is None:
                words = " or ".join(repr(prefix) for prefix in prefixes)
                return [note(f"the legacy bucket {side.bucket} holds no object that begins with {words}")], None
            facts = bucket.head(key)
    except RowferryError as error:
        return [_refuse(side, error, "listed and read", "s3:ListBucket and s3:GetObject")], None
    found = [fine(f"the legacy bucket {side.bucket} can be listed and read")]
    if facts.size_bytes > MAX_COPIED_BYTES:
        return [*found, note(f"{key!r}, the first legacy object, is too large to be copied for a try")], None
    return found, key


def _try_production(plan: Plan, source_key: str | None) -> Iterator[Finding]:
    side = plan.production
    try:
        bucket = open_bucket(side, load_credentials(side, os.environ))
    except RowferryError as error:
        yield problem(error)
        return
    probe_key = f"rowferry-check-{secrets.token_hex(8)}"
    with bucket:
        left: list[Finding] = []
        with _removed(bucket, probe_key, left):
            written = list(_try_writing(bucket, side, probe_key))
            yield from written
            if plan.server_side and source_key is not None and written[-1].level == "fine":
                yield from _try_copying(bucket, plan, source_key, probe_key)
        yield from left


def _try_writing(bucket: Bucket, side: Side, probe_key: str) -> Iterator[Finding]:
    body = secrets.token_bytes(32)
    try:
        bucket.check_exists()
        bucket.first_key()
        bucket.put(probe_key, body)
        same = bucket.get(probe_key) == body
    except RowferryError as error:
        yield _refuse(side, error, "listed, written and read", "s3:ListBucket, s3:PutObject and s3:GetObject")
        return
    if same:
        yield fine(f"the production bucket {side.bucket} can be listed, written and read")
    else:
        yield problem(f"the production bucket {side.bucket} gave other bytes back than were written to {probe_key!r}")


def _try_copying(bucket: Bucket, plan: Plan, source_key: str, probe_key: str) -> Iterator[Finding]:
    """Copy a legacy object onto the probe, twice, the second time under a condition that cannot hold."""
    try:
        bucket.copy_from(plan.legacy, source_key, probe_key)
    except RowferryError as error:
        what = f"the production side cannot copy from the legacy bucket {plan.legacy.bucket} ({error})"
        remedy = 'let the production credentials read the legacy bucket, or set `transfer = "stream"` in the plan'
        yield problem(what, remedy)
        return
    yield fine("the production side copies from the legacy bucket by itself")
    try:
        bucket.copy_from(plan.legacy, source_key, probe_key, if_none_match=True)
    except PreconditionFailed:
        yield note("the production server honours If-None-Match: objects are copied without asking first")
    except RowferryError as error:
        yield note(f"the production server refuses If-None-Match ({error}): every object costs a HEAD before its copy")
    else:
        yield note("the production server ignores If-None-Match: every object costs a HEAD before its copy")


@contextmanager
def _removed(bucket: Bucket, key: str, left: list[Finding]) -> Generator[None]:
    """Remove an object in the end, however that comes; put a note in `left` when it cannot be removed."""
    try:
        yield
    finally:
        try:
            bucket.delete(key)
        except AccessDenied as error:
            left.append(note(f"the probe object {key!r} may not be removed again ({error})", "remove it by hand"))
        except RowferryError:
            # Whoever could not even write has said so.
            pass


def _refuse(side: Side, error: RowferryError, done: str, rights: str) -> Finding:
    what = f"the {side.name} bucket {side.bucket} cannot be {done}: {error}"
    if isinstance(error, BucketNotFound):
        return problem(f"there is no {side.name} bucket {side.bucket}", f"correct [{side.name}] in the plan")
    if isinstance(error, AccessDenied):
        return problem(what, f"give the {side.name} credentials {rights} there")
    return problem(what)
