"""Access control lists: who may do what with an object, and which canned ACL that is. No I/O."""

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from rowferry.errors import ServerFault
from rowferry.plan import CannedAcl
from rowferry.s3.responses import name_of, parse_xml

Grants = frozenset[tuple[str, str]]
"""Grantee (the URI of a group, or the id of an account) and permission; those of the object's owner left out."""

_GROUPS = "http://acs.amazonaws.com/groups/global/"
_EVERYONE, _AUTHENTICATED = f"{_GROUPS}AllUsers", f"{_GROUPS}AuthenticatedUsers"
_GRANTS_OF: Mapping[CannedAcl, Grants] = {
    "private": frozenset(),
    "public-read": frozenset({(_EVERYONE, "READ")}),
    "public-read-write": frozenset({(_EVERYONE, "READ"), (_EVERYONE, "WRITE")}),
    "authenticated-read": frozenset({(_AUTHENTICATED, "READ")}),
}
"""Source: Amazon S3 User Guide, "Access control list (ACL) overview", canned ACL. What the others grant to the owner of
the bucket is nothing where that is the object's owner as well."""


def read_grants(body: bytes) -> Grants:
    """Return whom a GetObjectAcl response grants what, but for the owner.

    Raises ServerFault when the body is no such list, lest an object's own bytes pass for a private ACL.
    """
    root = parse_xml(body)
    if root is None or (name_of(root) != "AccessControlPolicy" and root.find("{*}AccessControlList") is None):
        raise ServerFault("UnreadableResponse", "the server's ACL is not S3's XML")
    owner = next((_text(element, "ID") for element in root if name_of(element) == "Owner"), "")
    found = (
        (_text(grant, "URI") or _text(grant, "ID") or _text(grant, "EmailAddress"), _text(grant, "Permission"))
        for grant in root.iter()
        if name_of(grant) == "Grant"
    )
    return frozenset((grantee, permission) for grantee, permission in found if grantee != owner)


def find_canned(grants: Grants) -> CannedAcl | None:
    """Return the canned ACL that grants just this; None where there is none."""
    return next((acl for acl, granted in _GRANTS_OF.items() if granted == grants), None)


def is_granted(grants: Grants, acl: CannedAcl) -> bool:
    """Return whether an object with this canned ACL may have these grants.

    Of the ACLs for the bucket's owner, no more can be told than that no group is granted anything.
    """
    if acl in _GRANTS_OF:
        return grants == _GRANTS_OF[acl]
    return not any(grantee.startswith(_GROUPS) for grantee, _ in grants)


def _text(parent: Element, name: str) -> str:
    return next((child.text or "" for child in parent.iter() if name_of(child) == name), "")
