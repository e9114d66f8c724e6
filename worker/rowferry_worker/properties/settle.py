"""What a production object shall be: the properties of its legacy object, and over them those of the plan."""

import logging
from typing import NamedTuple

from rowferry.errors import ObjectRejected
from rowferry.plan import CannedAcl, ProductionSide
from rowferry.s3.properties import (
    ENCRYPTION,
    REPLACE_METADATA,
    content_headers,
    find_differences,
    find_lost_content,
    read_content,
    storage_headers,
)
from rowferry.s3.responses import Response
from rowferry_worker.objects.requests import DemandingObject, GivenBy, ObjectRequests, Tags
from rowferry_worker.properties.acls import Acls
from rowferry_worker.properties.tags import Tagging

_log = logging.getLogger(__name__)

KEPT_CLASSES = frozenset({"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"})
"""Storage classes whose objects can be read at once; a row must never point at one that has to be restored first."""


class Description(NamedTuple):
    """What one production object shall be."""

    source_key: str
    headers: list[tuple[str, str]]
    """Of the operation that gives it its properties, the headers for tags and ACL among them."""
    tags: Tags | None
    """None: CopyObject brings those of the legacy object along."""
    acl: CannedAcl | None


class Properties:
    """What the plan says of production objects, and what a worker has learned of the servers; shared by all copies."""

    def __init__(self, side: ProductionSide | None = None, *, tagging: Tagging | None = None) -> None:
        """`side`: that of the plan; None: objects are what the legacy ones are."""
        self.tagging = tagging or Tagging("copy" if side is None else side.tags)
        self._acls = Acls(None if side is None else side.acl)
        self._content = () if side is None else content_headers(side)
        self._storage = () if side is None else storage_headers(side)
        self._encryption = None if side is None else side.encryption
        self._encrypts: dict[GivenBy, bool] = {}
        """Whether an object that was written with an operation was encrypted as the plan says."""
        self._is_looked_at: set[GivenBy] = set()
        self.keeps_others = False
        """Whether an object was kept whose bytes are right, and whose content headers or metadata are not."""

    @property
    def need_metadata(self) -> bool:
        """Return whether CopyObject must be told all metadata of the legacy object: it copies all, or nothing."""
        return bool(self._content)

    @property
    def are_plain(self) -> bool:
        """Return whether CopyObject brings all of an object along, and nothing has to be given or looked at."""
        return not (self._content or self._storage or self._acls.are_given) and self.tagging.comes_along

    async def describe(
        self, s3: ObjectRequests, source_key: str, seen: Response, operation: GivenBy, *, keep_class: bool
    ) -> Description:
        """Return what a new object shall be whose legacy object has the headers `seen`.

        `keep_class`: the production server knows the storage classes of the legacy one. Raises ObjectRejected for what
        a write cannot bring along.
        """
        headers = self._describe_content(seen, keep_class=keep_class)
        tags = await self.tagging.read(s3, source_key, seen)
        acl = await self._acls.choose(s3, source_key)
        return Description(source_key, [*headers, *self._give(tags, acl, operation)], tags, acl)

    async def describe_copy(self, s3: ObjectRequests, source_key: str, seen: Response | None) -> Description:
        """Return the same for CopyObject, by which most comes along; `seen`: needed where `need_metadata`."""
        headers = list(self._storage)
        if self.need_metadata and seen is not None:
            headers = [REPLACE_METADATA, *self._describe_content(seen, keep_class=False)]
        acl, tags = await self._acls.choose(s3, source_key), self.tagging.fixed
        return Description(source_key, [*headers, *self._give(tags or (), acl, "CopyObject")], tags, acl)

    async def settle(
        self,
        s3: ObjectRequests,
        key: str,
        described: Description,
        operation: GivenBy,
        written: Response | None = None,
    ) -> None:
        """See to it that an object that was just written is what was described; `written`: its HEAD, if there is one.

        Raises ObjectRejected where the server cannot make it that, ServerFault where it does not find it.
        """
        with DemandingObject():
            if described.tags is None or operation == "CopyObject":
                await self.tagging.follow_copy(s3, described.source_key, key)
            else:
                await self.tagging.settle(s3, key, described.tags, operation, written)
            await self._acls.settle(s3, key, described.acl, operation)
            await self._look(s3, key, operation, written)

    async def mend(
        self, s3: ObjectRequests, source_key: str, seen: Response, key: str, existing: Response, *, with_acl: bool
    ) -> None:
        """Give an identical object that stands in production its tags and its ACL: nothing else is changed of it.

        Without `with_acl`, the application may have given it another ACL since. Raises ObjectRejected where it is not
        encrypted as the plan says, or has another ACL that cannot be changed.
        """
        if not self.are_encrypted(existing):
            words = (
                "an identical production object is not encrypted as the plan says: see `rowferry requeue --on-conflict`"
            )
            raise ObjectRejected("NotEncrypted", words)
        with DemandingObject():
            await self.tagging.mend(s3, source_key, seen, key, existing)
            if with_acl:
                await self._acls.mend(s3, source_key, key)

    def are_encrypted(self, existing: Response) -> bool:
        """Return whether an object, by its HEAD, is encrypted as the plan says, if it does."""
        return self._encryption is None or existing.headers.get(ENCRYPTION) == self._encryption

    async def find_lost(
        self, s3: ObjectRequests, source_key: str, seen: Response, key: str, existing: Response
    ) -> list[str]:
        """Return, in words, what a production object with the right bytes does not have of its legacy object.

        Content headers, metadata and tags, but for those that the plan sets. `seen`: the headers of the legacy object.
        """
        lost = find_lost_content(seen, existing, self._content)
        tags = () if self.tagging.fixed is not None else await self.tagging.read(s3, source_key, seen)
        if tags and dict(tags) != dict(await s3.fetch_tags("production", key)):
            lost.append("its tags are not those of the legacy object")
        return lost

    def note_kept(self, seen: Response, key: str, existing: Response) -> None:
        """Note that a production object is kept, since its bytes are right; tell the first that is otherwise."""
        if not self.keeps_others and (lost := find_lost_content(seen, existing, self._content)):
            self.keeps_others = True
            words = "a kept object has the right bytes, but other properties: `rowferry verify` names all of them"
            _log.warning(words, extra={"new_key": key, "differences": ", ".join(lost)})

    async def find_differences(self, s3: ObjectRequests, source_key: str, key: str, existing: Response) -> list[str]:
        """Return, in words, what a production object is not that the plan says of it; its tags are not looked at.

        Nor is its storage class, which a lifecycle rule may have changed.
        """
        expected = tuple(pair for pair in (*self._content, *self._storage) if pair[0] != "x-amz-storage-class")
        found = find_differences(expected, existing.headers)
        acl = await self._acls.find_difference(s3, source_key, key)
        return [*found, acl] if acl else found

    def _describe_content(self, seen: Response, *, keep_class: bool) -> list[tuple[str, str]]:
        """Return the legacy object's headers, but for those that the plan sets, and the plan's."""
        of_plan = (*self._content, *self._storage)
        names = {name for name, _ in of_plan}
        return [pair for pair in describe_object(seen, keep_class=keep_class) if pair[0] not in names] + [*of_plan]

    def _give(self, tags: Tags, acl: CannedAcl | None, operation: GivenBy) -> list[tuple[str, str]]:
        if self._encrypts.get(operation) is False:
            raise _refuse_plain(operation)
        return self.tagging.header(tags, operation) + self._acls.header(acl, operation)

    async def _look(self, s3: ObjectRequests, key: str, operation: GivenBy, written: Response | None) -> None:
        """Look once, for each operation, whether an object has the headers of the plan."""
        expected = (*self._content, *self._storage)
        if not expected or operation in self._is_looked_at:
            return
        found = written or await s3.head("production", key)
        if not self.are_encrypted(found):
            self._encrypts[operation] = False
            raise _refuse_plain(operation)
        self._is_looked_at.add(operation)
        if lost := find_differences(expected, found.headers):
            _log.warning(
                "the server does not keep what the plan says of objects",
                extra={"operation": operation, "differences": ", ".join(lost)},
            )


def _refuse_plain(operation: GivenBy) -> ObjectRejected:
    words = f"the production server does not encrypt what {operation} writes as the plan says: see `encryption`"
    return ObjectRejected("NotEncrypted", words)


def describe_object(response: Response, *, keep_class: bool) -> list[tuple[str, str]]:
    """Return the headers that give a new object the content headers, metadata and storage class of the legacy one.

    The storage class is left to the bucket unless `keep_class`, and where it would make an archive of the object.
    Raises ObjectRejected for what headers cannot bring along.
    """
    headers = read_content(response)
    storage_class = response.headers.get("x-amz-storage-class", "")
    if keep_class and storage_class in KEPT_CLASSES:
        headers.append(("x-amz-storage-class", storage_class))
    if "x-amz-website-redirect-location" in response.headers:
        raise ObjectRejected("WebsiteRedirect", "the object is a website redirect, which a copy would lose")
    if response.headers.get("x-amz-missing-meta", "0").strip() != "0":
        words = "some of the object's metadata does not fit into headers, so a copy would lose it"
        raise ObjectRejected("MissingMetadata", words)
    return headers
