"""Fetches an object by the plan's `public_url`, as anybody could."""

import gzip
import ssl
from collections.abc import Callable, Iterator
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from rowferry.http.trust import trust
from rowferry.plan import Plan
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry_enqueue.checks.finding import Finding, fine, note, problem
from rowferry_enqueue.checks.rows.keys import quote_key

SECONDS = 20
"""For one fetch."""


def check_public_url(
    plan: Plan, probe: tuple[str, bytes] | None, find_key: Callable[[], str | None]
) -> Iterator[Finding]:
    """Fetch the probe, given by its key and bytes, once; where that fails, or there is none, an object below `to`.

    `find_key` returns the key of such an object: a policy may make public just what is below `to`.
    """
    url = plan.production.public_url
    if url is None:
        return
    fault = "" if probe is None else fetch(plan, *probe)
    if probe is not None and not fault:
        yield fine(f"public_url leads to production objects: {url} shows the probe to anybody")
        return
    key = find_key()
    other = "" if key is None else fetch(plan, key)
    if key is not None and not other:
        words = f"public_url leads to production objects: {url} shows {quote_key(key)} to anybody"
        yield fine(words) if probe is None else note(f"{words}, but not the probe ({fault})")
    elif probe is None and key is None:
        yield note("not checked, since a check would write: whether public_url leads to production objects")
    else:
        yield problem(f"public_url does not show production objects ({fault or other})", _remedy(plan, fault or other))


def fetch(plan: Plan, key: str, expected: bytes | None = None) -> str:
    """Return why the public cannot read an object by its URL; empty where it can, and gets the expected bytes."""
    side = plan.production
    url = f"{(side.public_url or '').rstrip('/')}/{quote(key)}"
    request = Request(url, headers={"User-Agent": "rowferry-check", "Accept-Encoding": "identity"})  # noqa: S310 - the plan takes http and https only
    most = 1 if expected is None else len(expected) + 1
    try:
        with urlopen(request, timeout=SECONDS, context=trust(resolve_endpoint(side).ca_bundle)) as response:  # noqa: S310
            body = response.read(most)
    except HTTPError as error:
        error.close()
        return f"{url} answers {error.code}"
    except (OSError, HTTPException, ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return f"{url} cannot be fetched: {reason}"
    return "" if expected is None or _is_same(body, expected) else f"{url} has other bytes than the object"


def _is_same(body: bytes, expected: bytes) -> bool:
    """Return whether the bytes are those of the object; a CDN may inflate what is stored compressed."""
    try:
        return body in {expected, gzip.decompress(expected)}
    except (OSError, EOFError):
        return body == expected


def _remedy(plan: Plan, fault: str) -> str:
    if fault.endswith(("401", "403", "400")):
        acl = "" if plan.production.acl else 'add `acl = "public-read"` or "copy" to [production], or '
        return f"{acl}let the bucket's policy and its block of public access allow that everybody reads these objects"
    return "correct public_url: it must lead to the production bucket, with the whole key after it"
