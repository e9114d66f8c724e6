"""Turns an error of a bucket into a finding: the real reason, and what to do about it."""

import secrets

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectError,
    ObjectNotFound,
    RowferryError,
    SideFault,
    TimedOut,
    Unreachable,
    UsageError,
)
from rowferry.plan import Side
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.client import ObjectClient, check_bucket
from rowferry.s3.cures import cure_of, find_cure, refusal_of
from rowferry.s3.operations import head_object, list_first_object
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.finding import Finding, note, problem

_FIRST = frozenset({"HeadBucket", "ListObjectsV2", ""})
"""The operations that a bucket is looked at with; after them, its address is known to be right."""
_BROKEN_OFF = frozenset({"ConnectionLost", "DeadlinePassed"})
"""Codes of our own for a request whose connection was made."""


def check_bucket_exists(client: ObjectClient, side: Side, named: str | None = None) -> list[Finding]:
    """Return a problem, a note, or nothing about a bucket, before any of its objects is asked for.

    `named`: what names the bucket, if not the plan: an option.
    """
    refusal: RowferryError | None = None
    try:
        check_bucket(client, side, tries=TRIES)
    except RowferryError as error:
        refusal = error
    listed = _list(client, side)
    if isinstance(refusal, UsageError | Unreachable | TimedOut):
        return [refuse(side, refusal, "looked at", "s3:ListBucket")]
    if not _is_s3(listed):
        return [_no_s3(side, listed)]
    if refusal is not None:  # a GET says more than a HEAD, whose response has no body
        error = listed if isinstance(listed, ObjectError) else refusal
        return [refuse(side, error, "looked at", "s3:ListBucket", named)]
    return [_judge_unlisted(client, side, listed)] if isinstance(listed, ObjectError) else []


def _judge_unlisted(client: ObjectClient, side: Side, listed: ObjectError) -> Finding:
    """Return what it means that a bucket cannot be listed: Amazon S3 then answers 403 for what is not there."""
    what = f"the {side.name} bucket {side.bucket} cannot be listed ({listed})"
    try:
        client.ask(head_object(side.name, f"rowferry-check-{secrets.token_hex(8)}"), tries=TRIES)
    except AccessDenied:
        tell = problem if side.name == "production" else note
        what += ", so no missing object can be told from a forbidden one"
        return tell(what, explain(side, listed) or cure_of("listing-denied", side))
    except ObjectError:
        pass
    return note(f"{what}: only status does that")


def refuse(side: Side, error: RowferryError, done: str, rights: str, named: str | None = None) -> Finding:
    """Return the problem that a bucket cannot be `done` ("read"); `rights` are what the credentials need for it."""
    if isinstance(error, UsageError):
        return problem(error)
    if isinstance(error, BucketNotFound):
        place = side.endpoint_url or f"AWS, {side.region_or_default}"
        remedy = f"correct {named or f'[{side.name}] in the plan'}"
        if url := _leave_bucket_out(side):
            remedy += f"; where endpoint_url names the bucket already, write endpoint_url = {url!r}"
        return problem(f"there is no {side.name} bucket {side.bucket} at {place}", remedy)
    what = f"the {side.name} bucket {side.bucket} cannot be {done}: {summarise_error(error)}"
    return problem(what, _find_remedy(side, error, rights))


def _find_remedy(side: Side, error: RowferryError, rights: str) -> str:
    log = "see the log of that server, or of a proxy before it"
    match error:
        case SideFault():
            return error.remedy
        case AccessDenied():
            return explain(side, error) or f"give the {side.name} credentials {rights} there"
        case ObjectError() if error.code in _BROKEN_OFF and error.operation not in _FIRST:
            ranged = " with a range" if error.operation == "GetObject" else ""
            return f"{log}, why {error.operation}{ranged} ends so"
        case Unreachable() | TimedOut():
            at = resolve_endpoint(side)
            connect = f"correct `endpoint_url` of [{side.name}], or let this host connect to {at.host}:{at.port}"
            return explain(side, error) or connect
        case _:
            return explain(side, error) or log


def explain(side: Side, error: RowferryError) -> str:
    """Return what the server's own words tell; empty where they tell no more than that a right is missing."""
    cure = find_cure(refusal_of(error), side) if isinstance(error, ObjectError) else None
    return "" if cure is None or cure.is_right else str(cure)


def summarise_error(error: RowferryError) -> str:
    """Return an error's message without the remedy at its end."""
    return (error.summary if isinstance(error, ObjectError) else str(error)).rstrip(".")


def _list(client: ObjectClient, side: Side) -> Response | ObjectError:
    try:
        return client.ask(list_first_object(side.name), tries=TRIES)
    except ObjectError as error:
        return error


def _is_s3(listed: Response | ObjectError) -> bool:
    """Return whether an S3 server could have answered a listing so, refusals included."""
    if isinstance(listed, Response):
        return b"ListBucketResult" in listed.body
    return not isinstance(listed, ObjectNotFound) and listed.code != "UnreadableResponse"


def _no_s3(side: Side, listed: Response | ObjectError) -> Finding:
    endpoint = resolve_endpoint(side)
    if encoding := listed.headers.get("content-encoding"):
        what = f"what the server at {endpoint.url} lists comes compressed ({encoding}), although it is asked for plain"
        proxy = f" ({server[:40]})" if (server := listed.headers.get("server")) else ""
        remedy = f"let the proxy before it{proxy} compress nothing: nginx `gzip off`, Apache `SetEnv no-gzip 1`"
        return problem(what, remedy)
    if url := _leave_bucket_out(side):
        what = f"endpoint_url of [{side.name}] seems to name the bucket {side.bucket}, which stands behind it once more"
        return problem(what, f"write endpoint_url = {url!r}")
    what = f"the server at {endpoint.url} does not answer as S3 does, so the {side.name} bucket cannot be used"
    return problem(what, f"correct `endpoint_url` of [{side.name}] in the plan")


def _leave_bucket_out(side: Side) -> str | None:
    """Return the endpoint without the bucket, where its host begins with that or its path ends in it; else None."""
    url = (side.endpoint_url or "").rstrip("/")
    shorter = url.replace(f"//{side.bucket}.", "//", 1).removesuffix(f"/{side.bucket}")
    return None if shorter == url else shorter
