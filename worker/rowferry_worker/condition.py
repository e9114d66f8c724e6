"""Does the production server honour `If-None-Match: *` on the writes we make? Asked once, with a real object."""

import logging
from threading import Lock
from typing import Literal

_log = logging.getLogger(__name__)

Belief = Literal["unknown", "asking", "honoured", "ignored"]


class Condition:
    """What a worker knows of one production bucket's server; shared by all its journeys.

    Until it knows, and where the server ignores the condition, each object costs a HEAD before its copy. The first
    object that was copied is copied once more under the condition: 412 proves that the server honours it, 200 that
    it does not (it then has written the same bytes again). No probe object is left behind.
    """

    def __init__(self, bucket: str, operation: str) -> None:
        """`operation` is the S3 operation the condition goes with, for the log."""
        self._bucket = bucket
        self._operation = operation
        self._belief: Belief = "unknown"
        self._turn = Lock()

    @property
    def honoured(self) -> bool:
        """Return whether the condition may replace the HEAD."""
        return self._belief == "honoured"

    def begin_asking(self) -> bool:
        """Return True to the one journey that is to ask."""
        with self._turn:
            if self._belief != "unknown":
                return False
            self._belief = "asking"
            return True

    def answer(self, belief: Literal["unknown", "honoured", "ignored"]) -> None:
        """Note what the server did; "unknown" lets another journey ask."""
        self._belief = belief
        fields = {"bucket": self._bucket, "operation": self._operation}
        if belief == "ignored":
            _log.warning("the server ignores If-None-Match, so every object costs a HEAD before its copy", extra=fields)
        elif belief == "honoured":
            _log.info("the server honours If-None-Match, so objects are copied without a HEAD", extra=fields)
