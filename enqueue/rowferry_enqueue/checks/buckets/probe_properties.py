"""Probe objects that are what the plan says of production objects: whether the server makes them that."""

from collections.abc import Iterator
from typing import NamedTuple

from rowferry.errors import AccessDenied, ObjectError
from rowferry.plan import CannedAcl, Plan, ProductionSide
from rowferry.s3 import operations
from rowferry.s3.acl import is_granted, read_grants
from rowferry.s3.operations import Pairs, digest_header
from rowferry.s3.properties import (
    REPLACE_METADATA,
    REPLACE_TAGS,
    content_headers,
    encode_tags,
    find_differences,
    storage_headers,
)
from rowferry.s3.responses import read_tags
from rowferry_enqueue.checks.buckets.bucket_errors import explain, summarise_error
from rowferry_enqueue.checks.buckets.probe import Probe
from rowferry_enqueue.checks.finding import Finding, fine, note, problem

BODY = b"a probe of rowferry check"


class Wish(NamedTuple):
    """One thing that the plan says of production objects."""

    key: str
    """Of the plan."""
    headers: Pairs
    rights: str
    """What the credentials need for it."""


def list_wishes(side: ProductionSide, acl: CannedAcl | None) -> list[Wish]:
    """Return what the plan says of objects; `acl` is what is tried, if there is one to be."""
    kms = "kms:GenerateDataKey and kms:Decrypt on the key" if side.encryption != "AES256" else "s3:PutObject"
    storage = storage_headers(side)
    wishes = [Wish(name.replace("-", "_"), ((name, value),), "s3:PutObject") for name, value in content_headers(side)]
    wishes.append(Wish("storage_class", tuple(pair for pair in storage if "class" in pair[0]), "s3:PutObject"))
    wishes.append(Wish("encryption", tuple(pair for pair in storage if "class" not in pair[0]), kms))
    if isinstance(side.tags, dict):
        tags = ("x-amz-tagging", encode_tags(tuple(side.tags.items())))
        wishes.append(Wish("tags", (tags,), "s3:PutObjectTagging"))
    if acl is not None:
        rights = "s3:PutObjectAcl, and see that the bucket does not block public ACLs"
        wishes.append(Wish("acl", (("x-amz-acl", acl),), rights))
    return [wish for wish in wishes if wish.headers]


class ShapedProbe:
    """Writes probes by the operations that workers use, with all that the plan says, and looks at them."""

    def __init__(self, probe: Probe, plan: Plan, acl: CannedAcl | None) -> None:
        """`acl`: that of a legacy object, if it is known and a canned one."""
        self.key = f"{probe.key}-shaped"
        self._probe = probe
        self._plan = plan
        of_plan = plan.production.acl
        self._acl: CannedAcl | None = (acl or "private") if of_plan == "copy" else of_plan
        self._wishes = list_wishes(plan.production, self._acl)
        self._headers = tuple(header for wish in self._wishes for header in wish.headers)

    @property
    def probe(self) -> tuple[str, bytes]:
        """Return the key of the probe in one part, and its bytes."""
        return self.key, self._probe.body if self._plan.server_side else BODY

    def check(self) -> Iterator[Finding]:
        """Write the probes and yield what came of it; nothing where the plan says nothing of objects."""
        side = self._plan.production
        if not self._wishes and side.tags != "none" and side.public_url is None:
            return
        findings: list[Finding] = []
        for operation in ("CopyObject" if self._plan.server_side else "PutObject", "CreateMultipartUpload"):
            try:
                key = self._write(operation)
            except ObjectError as error:
                yield from self._find_refused(operation, error)
                return
            findings += self._compare(operation, key)
        names = ", ".join(wish.key for wish in self._wishes)
        if names and not findings:
            yield fine(f"production objects become what the plan says: {names}")
        yield from findings

    def _write(self, operation: str) -> str:
        """Write a probe and return its key."""
        if operation == "PutObject":
            request = self._put(self._headers)
        elif operation == "CopyObject":
            request = self._copy()
        else:
            request = self._probe.begin_upload(f"{self.key}-parts", self._headers, BODY, if_none_match=False)
        self._probe.write_object(request)
        return request.key

    def _put(self, headers: Pairs) -> operations.Request:
        return operations.put_object(self.key, BODY, headers=(*headers, digest_header(BODY)), if_none_match=False)

    def _copy(self) -> operations.Request:
        """Return the request that copies the first probe, which has tags and metadata, as workers copy objects."""
        directives = [REPLACE_METADATA] if content_headers(self._plan.production) else []
        if self._plan.production.tags != "copy" and not self._probe.lacks_tags:
            directives.append(REPLACE_TAGS)
        return operations.copy_object(
            self.key,
            source_bucket=self._plan.production.bucket,
            source_key=self._probe.key,
            if_none_match=False,
            headers=[*directives, *self._headers],
        )

    def _find_refused(self, operation: str, error: ObjectError) -> Iterator[Finding]:
        """Yield which of the properties a server refuses, each tried by itself; all together where it is none."""
        refused = 0
        for wish in self._wishes:
            try:
                self._probe.write_object(self._put(wish.headers))
            except ObjectError as cause:
                refused += 1
                what = f"the production server refuses `{wish.key}` of the plan ({summarise_error(cause)})"
                leave_out = f"correct `{wish.key}`, or leave `{wish.key}` out of [production]"
                right = f"give the production credentials {wish.rights}"
                yield problem(what, right if isinstance(cause, AccessDenied) else leave_out)
        if not refused:
            what = (
                f"{operation} with all that the plan says of production objects is refused ({summarise_error(error)})"
            )
            remedy = "leave out of [production] what this server does not know"
            yield problem(what, explain(self._plan.production, error) or remedy)

    def _compare(self, operation: str, key: str) -> Iterator[Finding]:
        """Yield what an object that was written has not become."""
        side = self._plan.production
        found = self._probe.ask(operations.head_object("production", key)).headers
        for words in find_differences((*content_headers(side), *storage_headers(side)), found):
            remedy = "leave it out of [production], or use a server that keeps it"
            yield problem(f"not as the plan says after {operation}: {words}", remedy)
        if self._acl is not None:
            yield from self._compare_acl(operation, key, self._acl)
        if side.tags == "none":
            yield from self._compare_tags(operation, key)

    def _compare_acl(self, operation: str, key: str, acl: CannedAcl) -> Iterator[Finding]:
        remedy = "leave `acl` out of [production], and make the bucket public by its policy if it shall be"
        try:
            if self._has_acl(key, acl):
                return
            self._probe.ask(operations.put_object_acl(key, acl))
            if self._has_acl(key, acl):
                yield note(f"the ACL given with {operation} is dropped, so it costs each object one more request")
                return
            yield problem(f"the production server does not make an object {acl}", remedy)
        except AccessDenied as error:
            what = f"whether production objects become {acl} cannot be seen ({summarise_error(error)})"
            yield note(what, "give the production credentials s3:GetObjectAcl and s3:PutObjectAcl")
        except ObjectError as error:
            yield problem(f"the production server knows no ACLs ({summarise_error(error)})", remedy)

    def _has_acl(self, key: str, acl: CannedAcl) -> bool:
        """Return whether an object has an ACL. A server without any answers with the object, or not at all."""
        return is_granted(read_grants(self._probe.ask(operations.get_object_acl("production", key)).body), acl)

    def _compare_tags(self, operation: str, key: str) -> Iterator[Finding]:
        try:
            tags = read_tags(self._probe.ask(operations.get_object_tagging("production", key)).body)
        except ObjectError:
            return  # a server without tags gives an object none
        if tags:
            yield problem(f'{operation} brings tags along in spite of `tags = "none"`', 'set `transfer = "stream"`')
