"""Tags of objects: read where a server does not announce them, and put again where a server loses them."""

import logging
from itertools import count
from typing import Literal

from rowferry.errors import AccessDenied, Cancelled, ObjectError, ObjectRejected, ServerFault
from rowferry.plan import SideName, TagRule
from rowferry.reports.facts import COPY_KEEPS_TAGS, COPY_LEAVES_TAGS_OUT, NO_TAGS, Facts
from rowferry.s3.properties import REPLACE_TAGS, encode_tags
from rowferry.s3.responses import Response
from rowferry.s3.results import read_tag_count
from rowferry_worker.objects.requests import GivenBy, ObjectRequests, Tags, is_unknown

_log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 4096
"""Longer sets of tags are put by a request of their own: S3 takes 8 KB of headers, metadata among them."""
ANNOUNCES = "AmazonS3"
"""The `Server` of a legacy server that is known to tell how many tags an object has, to those who may read them.
Source: Amazon S3 API Reference, GetObject, "x-amz-tagging-count"."""
ASKED_FIRST = 20
"""So many of its objects are asked all the same: whether their tags may be read."""


class Tagging:
    """What a worker has learned of the tags at both servers of a migration; shared by all its copies."""

    def __init__(self, rule: TagRule = "copy", facts: Facts | None = None) -> None:
        """`rule`: that of the plan. Tags that it names are given to each object, in the place of its own.

        `facts`: what a check has seen the production server do. What is not known is asked object by object: none
        stands for another.
        """
        self.fixed: Tags | None = None if rule == "copy" else () if rule == "none" else tuple(rule.items())
        """What each object gets; None: those of the legacy object."""
        self._announced: dict[bool, Literal["yes", "no", "unreadable"]] = {}
        """Whether responses of the legacy server tell how many tags an object has, those with a body and HEADs apart:
        LocalStack's HEAD does not."""
        self._kept: dict[GivenBy, bool] = {}
        """Whether the tags were there after an operation that was to give them."""
        known = (facts or {}).get(COPY_LEAVES_TAGS_OUT if self.fixed == () else COPY_KEEPS_TAGS)
        if known is not None and self.fixed in {None, ()}:
            self._kept["CopyObject"] = bool(known)
        self._can_replace = not (facts or {}).get(NO_TAGS)
        """Whether CopyObject may be asked for other tags: a server without any refuses the request for it."""
        self._removal: Literal["unknown", "works", "fails"] = "unknown"
        """Whether tags that CopyObject has brought along in spite of the plan can be taken away."""
        self._reads = count()
        self._copies = count()
        """Those whose legacy object was asked for its tags."""

    @property
    def comes_along(self) -> bool:
        """Return whether CopyObject is known to bring the tags of legacy objects along, and these are to stay."""
        return self.fixed is None and self._kept.get("CopyObject") is True

    async def read(self, s3: ObjectRequests, key: str, seen: Response) -> Tags:
        """Return the tags that an object shall have, by default those of the legacy object whose headers are given.

        Raises ServerFault when some are missing.
        """
        if self.fixed is not None:
            return self.fixed
        announced, has_body = read_tag_count(seen), bool(seen.body_bytes)
        if announced is not None:
            self._announced[has_body] = "yes"
            tags = await s3.fetch_tags("legacy", key) if announced else ()
            if len(tags) < announced:
                raise ServerFault("TagsMissing", f"the server announces {announced} tags and lists {len(tags)}")
            return tags
        known = self._announced.get(has_body)
        if known == "no":
            return await s3.fetch_tags("legacy", key)
        is_known = seen.headers.get("server") == ANNOUNCES and next(self._reads) >= ASKED_FIRST
        return () if known is not None or is_known else await self._ask_legacy(s3, key, has_body=has_body)

    def header(self, tags: Tags, operation: GivenBy) -> list[tuple[str, str]]:
        """Return the headers that give an object its tags; none where `settle` has to put them.

        CopyObject brings those of the legacy object along by itself, and takes others only instead of them. Raises
        ObjectRejected where it brings them along in spite of the plan, and they stay.
        """
        if operation == "CopyObject" and self._removal == "fails":
            raise _unwanted()
        replaces = [REPLACE_TAGS] if operation == "CopyObject" and self.fixed is not None and self._can_replace else []
        if not tags or self._kept.get(operation) is False or _is_long(tags):
            return replaces
        return [*replaces, ("x-amz-tagging", encode_tags(tags))]

    async def settle(
        self, s3: ObjectRequests, key: str, tags: Tags, operation: GivenBy, written: Response | None = None
    ) -> None:
        """See to it that the production object, just written, has its tags; `written`: its HEAD, where there is one.

        An ordinary write is looked at once, an upload each time. Raises ObjectRejected when the server keeps no tags.
        """
        if not tags:
            return
        if self._kept.get(operation) is False:
            await s3.put_tags(key, tags)
            return
        is_sent = not _is_long(tags)
        if is_sent and operation != "CreateMultipartUpload" and self._kept.get(operation):
            return
        if is_sent and written is not None and read_tag_count(written) == len(tags):
            return
        if await self._check(s3, key, tags, operation) and is_sent:
            self._note(operation, False)

    async def follow_copy(self, s3: ObjectRequests, source_key: str, key: str) -> None:
        """Find out whether CopyObject brings tags along, or has given those of the plan; put them where it has not."""
        if self.fixed == ():
            await self._remove(s3, source_key, key)
        elif self.fixed is not None:
            await self.settle(s3, key, self.fixed, "CopyObject")
        elif not self._kept.get("CopyObject"):
            await self._bring_along(s3, source_key, key)

    async def _bring_along(self, s3: ObjectRequests, source_key: str, key: str) -> None:
        """Put the tags of a copy where it has not those of its legacy object, and note whether it has."""
        kept = self._kept.get("CopyObject")
        if next(self._copies) == ASKED_FIRST:
            _log.info("every copied object is asked for its tags: rowferry check finds out whether copies have them")
        try:
            tags = await s3.fetch_tags("legacy", source_key)
        except Cancelled:
            raise
        except ObjectError as error:
            if kept is False:
                raise
            if isinstance(error, AccessDenied) or is_unknown(error):
                self._kept["CopyObject"] = True  # this worker cannot find out
            return
        if tags and kept is False:
            await s3.put_tags(key, tags)
        elif tags and await self._check(s3, key, tags, "CopyObject"):
            self._note("CopyObject", False)

    async def _remove(self, s3: ObjectRequests, source_key: str, key: str) -> None:
        """See to it that a copy has no tags: not every server heeds the directive.

        It is looked at until a copy of a tagged object has none. Raises ObjectRejected where they stay.
        """
        heeded = self._kept.get("CopyObject")
        if heeded:
            return
        if heeded is None:
            found = await _find_tags(s3, "production", key)
            if not found:
                if found is None:
                    self._note("CopyObject", True, "production tags cannot be read: copies may have some")
                elif await _find_tags(s3, "legacy", source_key):
                    self._note("CopyObject", True)
                return
            self._note("CopyObject", False, "CopyObject brings tags along in spite of the plan, so they are removed")
        await s3.put_tags(key, ())
        if self._removal != "works":
            self._removal = "fails" if await s3.fetch_tags("production", key) else "works"
        if self._removal == "fails":
            raise _unwanted()

    async def mend(self, s3: ObjectRequests, source_key: str, seen: Response, key: str, existing: Response) -> None:
        """Give an identical object its tags: an earlier attempt may have ended between its write and its tags.

        An object that has tags already keeps those.
        """
        if read_tag_count(existing):
            return
        tags = await self.read(s3, source_key, seen)
        if not tags:
            return
        found = await _fetch_production(s3, key)
        if found is not None and not found:
            await s3.put_tags(key, tags)

    async def _ask_legacy(self, s3: ObjectRequests, key: str, *, has_body: bool) -> Tags:
        """Return the tags of an object that announces none, and note what that says of the server."""
        try:
            tags = await s3.fetch_tags("legacy", key)
        except AccessDenied:
            self._announced = dict.fromkeys((False, True), "unreadable")
            words = (
                "tags of legacy objects may not be read and are not copied: allow s3:GetObjectTagging if there are any"
            )
            _log.warning(words)
            return ()
        except ObjectError as error:
            if not is_unknown(error):
                raise
            self._announced = dict.fromkeys((False, True), "unreadable")
            return ()
        if tags and has_body not in self._announced:
            self._announced[has_body] = "no"
            _log.info("the legacy server does not announce tags, so every object is asked for its own")
        return tags

    async def _check(self, s3: ObjectRequests, key: str, tags: Tags, operation: GivenBy) -> bool:
        """Look at the tags that were to be given; return True where they were not there and had to be put."""
        found = await _fetch_production(s3, key)
        if found is None:
            if _is_long(tags):
                raise _lost(key)
            self._note(operation, True, "production tags may not be read, so it is unknown whether they arrive")
            return False
        if dict(found) == dict(tags):
            self._note(operation, True)
            return False
        await s3.put_tags(key, tags)
        if dict(await s3.fetch_tags("production", key)) != dict(tags):
            raise _lost(key)
        return True

    def _note(self, operation: GivenBy, kept: bool, words: str = "") -> None:
        """Note what an operation does to tags, and tell it the first time."""
        known, self._kept[operation] = self._kept.get(operation), kept
        if not kept and not words:
            words = "the server drops the tags given with this operation, so they are put afterwards"
        if words and known is not kept:
            _log.info(words, extra={"operation": operation})


def _lost(key: str) -> ObjectRejected:
    return ObjectRejected("TagsLost", f"the production server keeps no tags of {key!r}, or hides them")


def _unwanted() -> ObjectRejected:
    words = 'CopyObject brings tags along in spite of `tags = "none"`, and they cannot be removed'
    return ObjectRejected("TagsUnwanted", f'{words}: set `transfer = "stream"`')


async def _find_tags(s3: ObjectRequests, side: SideName, key: str) -> Tags | None:
    """Return the tags of an object, None where they may not be read or the server knows none."""
    try:
        return await s3.fetch_tags(side, key)
    except ObjectError as error:
        if isinstance(error, AccessDenied) or is_unknown(error):
            return None
        raise


async def _fetch_production(s3: ObjectRequests, key: str) -> Tags | None:
    """Return the tags of a production object, None where they may not be read. Raises ObjectRejected for TagsLost.

    A server that knows no tags takes the request that puts some for the object itself, so none is sent before it has
    listed or counted those that there are.
    """
    try:
        return await s3.fetch_tags("production", key)
    except AccessDenied:
        return None
    except ObjectError as error:
        if not is_unknown(error):
            raise
        if read_tag_count(await s3.head("production", key)) is None:
            raise _lost(key) from error
        return ()  # Ceph RGW 16 lists those that an upload has lost in an empty answer


def _is_long(tags: Tags) -> bool:
    return len(encode_tags(tags)) > MAX_HEADER_BYTES
