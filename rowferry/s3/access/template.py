"""Heads of many requests that differ in their keys alone: laid out once a second, filled in and signed for each."""

import time

from rowferry.s3.access.credentials import CredentialSnapshot, KeyRing
from rowferry.s3.access.signing import HeadWriter
from rowferry.s3.encodings import Accepts
from rowferry.s3.operations import Request

KEY, SOURCE = "rowferry~key", "rowferry~source"
"""Keys that stand for those to be filled in: neither a host, a bucket nor a credential has a `~`."""
_SIGNATURE = "rowferry~signature"


class Template:
    """Writes the heads of requests as HeadWriter does, byte for byte. Event-loop thread only."""

    def __init__(self, writer: HeadWriter, request: Request, keys: KeyRing, accepts: Accepts) -> None:
        """`request`: one of them, of KEY and, where it names a source, of SOURCE."""
        self._writer, self._request, self._keys = writer, request, keys
        self._accepts: Accepts = accepts
        self._credentials: CredentialSnapshot | None = None
        self._second = 0
        self._canonical = self._head = ""

    def write(self, *targets: str) -> bytes:
        """Return the head of the request for these percent-encoded keys, that of the source behind the other."""
        credentials = self._keys.current
        if int(time.time()) != self._second or credentials is not self._credentials:
            self._lay_out(credentials)
        signature = self._moment.sign(self._canonical % targets)
        return (self._head % (*targets, signature)).encode("utf-8", "surrogateescape")

    def _lay_out(self, credentials: CredentialSnapshot) -> None:
        unsigned = self._writer.lay_out(self._request, credentials)
        head = self._writer.write_head(self._request, unsigned.complete(_SIGNATURE), self._accepts)
        self._canonical, self._head = _make_format(unsigned.canonical), _make_format(head)
        self._moment, self._second, self._credentials = unsigned.moment, unsigned.moment.second, credentials


def _make_format(text: str) -> str:
    text = text.replace("%", "%%")
    for mark in (KEY, SOURCE, _SIGNATURE):
        text = text.replace(mark, "%s")
    return text
