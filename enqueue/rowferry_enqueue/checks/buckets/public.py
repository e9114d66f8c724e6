"""Checks who may read the objects: by the ACL of a legacy object, and by the plan's `public_url`."""

import gzip
import ssl
from collections.abc import Callable, Iterator
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from rowferry.errors import AccessDenied, ObjectError
from rowferry.http.trust import trust
from rowferry.plan import CannedAcl, Plan
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.acl import find_canned, read_grants
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import get_object_acl
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import summarise_error
from rowferry_enqueue.checks.finding import Finding, fine, note, part, problem, quote_key

PUBLIC = frozenset({"public-read", "public-read-write"})
_CHOOSE = 'set `acl` of [production] to a canned ACL, such as "public-read"'


def check_legacy_acl(client: ObjectClient, plan: Plan, key: str) -> tuple[list[Finding], CannedAcl | None]:
    """Return the findings about the ACL of one legacy object, and which canned ACL it is, if it is one."""
    copies = plan.production.acl == "copy"
    try:
        canned = find_canned(read_grants(client.ask(get_object_acl("legacy", key), tries=TRIES if copies else 1).body))
    except ObjectError as error:
        return [_refuse(error)] if copies else [], None
    if not copies:
        return _warn(plan, key, canned), canned
    if canned is None:
        what = f"the ACL of {quote_key(key)} grants rights to accounts or groups that cannot be copied"
        return [part(f"{what}: such entries will fail", _CHOOSE)], None
    return [note(f"the ACL of {quote_key(key)} is {canned}, and so will be that of its copy")], canned


def _refuse(error: ObjectError) -> Finding:
    if isinstance(error, AccessDenied):
        what = f"the ACLs of legacy objects cannot be read ({summarise_error(error)})"
        return problem(what, f"give the legacy credentials s3:GetObjectAcl, or {_CHOOSE}")
    return problem(f"the legacy server tells no ACLs that could be copied ({summarise_error(error)})", _CHOOSE)


def _warn(plan: Plan, key: str, canned: CannedAcl | None) -> list[Finding]:
    """Return a note where a public object would become a private one without a word."""
    if canned not in PUBLIC or plan.production.acl is not None:
        return []
    what = f"legacy objects are {canned}, for example {quote_key(key)}; their copies get no ACL"
    return [note(what, 'add `acl = "copy"` to [production], unless the bucket itself is public or only you read them')]


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
