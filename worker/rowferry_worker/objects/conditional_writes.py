"""Which writes heed `If-None-Match: *`? Known for each operation by itself, asked once, with a real object."""

import logging
from typing import Literal

from rowferry.errors import PreconditionFailed
from rowferry.s3.responses import Response

_log = logging.getLogger(__name__)

CONDITION_REFUSED = frozenset({"NotImplemented", "InvalidArgument", "HTTP 501"})
"""Error codes by which a server may say that it does not know If-None-Match, or If-Match."""

WriteOperation = Literal["PutObject", "CopyObject", "CompleteMultipartUpload"]
"""The operations that put an object in its place."""
COMPLETE: WriteOperation = "CompleteMultipartUpload"


class ConditionalWriteSupport:
    """What a worker knows of one production bucket's server; shared by all its copies, used on the event loop only.

    Servers that heed the condition on one operation ignore it on another (Ceph RGW and gofakes3: PutObject, not
    CompleteMultipartUpload), so each operation is known by itself. Each write has the condition, from the first of a
    process on, until the server is known to ignore or to refuse it. As long as it is not known to heed it, each object
    costs a HEAD before its copy. The first object that was copied is copied once more under the condition: 412 proves
    that the server heeds it, 200 that it does not (it then has written the same bytes again). No probe object is left
    behind. What completes an upload is never trusted: a HEAD costs little beside the parts.
    """

    def __init__(self, bucket: str, supported: dict[WriteOperation, bool] | None = None) -> None:
        """`bucket` is the production bucket's name, for the log; `supported`: what is known already."""
        self._bucket = bucket
        self._supported = supported or {}
        self._probing: set[WriteOperation] = set()
        self.expects_existing = False
        """Whether an object was found at the last key that was looked at: this is probably a rerun."""
        self.confirms_digests: bool | None = None
        """Whether the ETags of PutObject were the MD5 of what was sent; False for good once one was not."""
        self.pins_completions = True
        """Whether If-Match goes with completions that replace an object; False for good once one was refused for it."""

    def supported(self, operation: WriteOperation) -> bool | None:
        """Return whether the server heeds the condition on an operation; None while that is unknown."""
        return self._supported.get(operation)

    def begin_probe(self, operation: WriteOperation) -> bool:
        """Return True to the one copy that is to find out; it must call `note` in the end."""
        if operation in self._supported or operation in self._probing:
            return False
        self._probing.add(operation)
        return True

    def note(self, operation: WriteOperation, supported: bool | None) -> None:
        """Note what the server did; None: it left that open, and another copy may find out."""
        self._probing.discard(operation)
        if supported is None or self._supported.get(operation) == supported:
            return
        self._supported[operation] = supported
        fields = {"bucket": self._bucket, "operation": operation}
        if supported:
            _log.info("the server honours If-None-Match, so objects are copied without a HEAD", extra=fields)
        else:
            _log.info("the server ignores If-None-Match, so every object costs a HEAD before its copy", extra=fields)

    def note_digest(self, *, confirmed: bool) -> None:
        """Note whether the ETag of what was written is the MD5 of what was sent."""
        if self.confirms_digests is not False and self.confirms_digests != confirmed:
            if self.confirms_digests is not None:
                _log.warning("the server did not confirm a digest, so bodies are hashed here from now on")
            self.confirms_digests = confirmed


class ObjectExists(PreconditionFailed):
    """An object exists at the production key already; `response` has its headers."""

    def __init__(self, response: Response) -> None:
        """Keep the headers that were seen."""
        super().__init__("PreconditionFailed", "an object exists at the production key")
        self.response = response
