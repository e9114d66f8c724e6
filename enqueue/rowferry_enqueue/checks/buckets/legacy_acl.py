"""Checks who may read the objects, by the ACL of a legacy object."""

from rowferry.errors import AccessDenied, ObjectError
from rowferry.plan import CannedAcl, Plan
from rowferry.s3.acl import find_canned, read_grants
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import get_object_acl
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import summarise_error
from rowferry_enqueue.checks.finding import Finding, note, part, problem, quote_key

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
