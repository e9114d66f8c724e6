"""ACLs of objects: read where they are to be copied, and put again where a server loses them."""

import logging
from typing import Literal

from rowferry.errors import AccessDenied, ObjectRejected
from rowferry.plan import Acl, CannedAcl
from rowferry.s3.acl import Grants, find_canned, is_granted
from rowferry_worker.objects.requests import GivenBy, ObjectRequests, fetch_known

_log = logging.getLogger(__name__)

LOST = "AclLost"
Kept = Literal["yes", "put", "lost"]
"""What becomes of an ACL that is given with an operation: it is there, it must be put afterwards, it cannot be had."""


class Acls:
    """What a worker has learned of the ACLs at both servers of a migration; shared by all its copies."""

    def __init__(self, acl: Acl | None = None) -> None:
        """`acl`: that of the plan; None: objects get what the bucket gives them."""
        self._acl: Acl | None = acl
        self._kept: dict[tuple[GivenBy, CannedAcl], Kept] = {}
        self._is_readable = True

    @property
    def are_given(self) -> bool:
        """Return whether objects get another ACL than the bucket gives them."""
        return self._acl is not None

    async def choose(self, s3: ObjectRequests, source_key: str) -> CannedAcl | None:
        """Return the ACL that the production object shall have; None: none is given.

        Raises ObjectRejected where that of the legacy object is to be copied and is no canned one, or is not told.
        """
        if self._acl != "copy":
            return self._acl
        remedy = "set `acl` of [production] to a canned ACL instead"
        grants = await fetch_known(
            s3.fetch_grants("legacy", source_key), ObjectRejected("AclUnknown", f"the server tells no ACLs: {remedy}")
        )
        canned = find_canned(grants)
        if canned is None:
            words = f"the legacy object grants rights to accounts or groups that cannot be copied: {remedy}"
            raise ObjectRejected("AclNotCanned", words)
        return canned

    def header(self, acl: CannedAcl | None, operation: GivenBy) -> list[tuple[str, str]]:
        """Return the header that gives an object its ACL. Raises ObjectRejected where the server loses it."""
        if acl is None:
            return []
        if self._kept.get((operation, acl)) == "lost":
            raise _lost(acl)
        return [("x-amz-acl", acl)]

    async def settle(self, s3: ObjectRequests, key: str, acl: CannedAcl | None, operation: GivenBy) -> None:
        """See to it that the production object, just written, has its ACL; looked at once for each ACL and operation.

        Raises ObjectRejected when the server does not keep it.
        """
        if acl is None:
            return
        match self._kept.get((operation, acl)):
            case "yes":
                return
            case "put":
                await s3.put_acl(key, acl)
            case "lost":
                raise _lost(acl)
            case None:
                self._note(operation, acl, await self._find_out(s3, key, acl))

    async def _find_out(self, s3: ObjectRequests, key: str, acl: CannedAcl) -> Kept:
        """Return what has become of the ACL that an object was given, and put it where that can be done."""
        try:
            if await self._has(s3, key, acl):
                return "yes"
            await self._put(s3, key, acl)
        except ObjectRejected as error:
            if error.code != LOST:
                raise
            return "lost"
        return "put"

    async def mend(self, s3: ObjectRequests, source_key: str, key: str) -> None:
        """Give an identical object that stands in production its ACL, where it has another.

        Who reads it by its URL must find it as public, or as private, as one that is copied now.
        """
        acl = await self.choose(s3, source_key)
        if acl is not None and not await self._has(s3, key, acl):
            await self._put(s3, key, acl)

    async def find_difference(self, s3: ObjectRequests, source_key: str, key: str) -> str:
        """Return, in words, which other ACL a production object has; empty where it has its own, or does not tell."""
        acl = await self.choose(s3, source_key)
        if acl is None or await self._has(s3, key, acl):
            return ""
        return f"the ACL is not {acl!r}"

    async def _has(self, s3: ObjectRequests, key: str, acl: CannedAcl) -> bool:
        """Return whether the production object has this ACL, as far as that may be seen."""
        if not self._is_readable:
            return True
        try:
            grants: Grants = await fetch_known(s3.fetch_grants("production", key), _lost(acl))
        except AccessDenied:
            self._is_readable = False
            _log.warning("production ACLs may not be read, so it is unknown whether they arrive: allow s3:GetObjectAcl")
            return True
        return is_granted(grants, acl)

    async def _put(self, s3: ObjectRequests, key: str, acl: CannedAcl) -> None:
        """Put an ACL, at a server that has just told another one: one without ACLs would overwrite the object."""
        await fetch_known(s3.put_acl(key, acl), _lost(acl))
        if not await self._has(s3, key, acl):
            raise _lost(acl)

    def _note(self, operation: GivenBy, acl: CannedAcl, kept: Kept) -> None:
        """Note what becomes of an ACL; tell it the first time. Raises ObjectRejected where it is lost."""
        if kept == "put" and self._kept.get((operation, acl)) != "put":
            words = "the server drops the ACL given with this operation, so it is put afterwards"
            _log.info(words, extra={"operation": operation})
        self._kept[operation, acl] = kept
        if kept == "lost":
            raise _lost(acl)


def _lost(acl: CannedAcl) -> ObjectRejected:
    words = f"the production server does not make an object {acl}: leave `acl` out of the plan, or let it keep ACLs"
    return ObjectRejected(LOST, words)
