"""Reads one HTTP/1.1 answer, piece by piece, as its bytes come in; no I/O here."""

import httptools

from rowferry.errors import ANSWER_TOO_LONG, ObjectRejected, ServerFault

Headers = list[tuple[bytes, bytes]]


class AnswerReader:
    """Takes bytes until the answer is complete. The methods that begin with `on_` are the parser's to call."""

    def __init__(self, *, is_head: bool, max_body_bytes: int) -> None:
        """`is_head`: there is no body, whatever the headers say; a longer one than `max_body_bytes` is refused."""
        self._is_head = is_head
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._size = 0
        self._is_too_long = False
        self._keeps_alive = False
        self._has_surplus = False
        self.status = 0
        self.headers: Headers = []
        self.has_headers = False
        """Whether all headers are there, of the answer itself and not of an interim one (1xx)."""
        self.is_complete = False

    @property
    def body(self) -> bytes:
        """Return what has come of the body."""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    @property
    def leaves_connection_usable(self) -> bool:
        """Return whether another request may be sent on the connection that brought this answer, and no more."""
        return self._keeps_alive and not self._has_surplus

    @property
    def ends_with_connection(self) -> bool:
        """Return whether the answer has begun and says neither how long it is nor where it ends."""
        return self.has_headers and not (self._find(b"content-length") or self._find(b"transfer-encoding"))

    def feed(self, data: bytes) -> None:
        """Take the next bytes in.

        Raises ServerFault when they are no HTTP, and ObjectRejected as soon as the body is seen to be too long.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.is_complete:
                raise ServerFault("UnreadableAnswer", f"what came is no HTTP answer ({error})") from error
            self._has_surplus = True
        if self._is_too_long:
            words = f"the answer is longer than {self._max_body_bytes} bytes; read the object in ranges"
            raise ObjectRejected(ANSWER_TOO_LONG, words)

    def on_message_begin(self) -> None:
        """Notice that there is more after the end."""
        self._has_surplus = self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        if not self.is_complete:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Look whether there is more to come, and how much."""
        status = self._parser.get_status_code()
        if self.is_complete or status < 200:
            return
        self.status = status
        self.has_headers = True
        if self._is_head:  # the parser goes on to wait for a body
            self.is_complete = True
            self._keeps_alive = self._find(b"connection").lower() != b"close"
        else:
            length = self._find(b"content-length")
            self._is_too_long = length.isdigit() and int(length) > self._max_body_bytes

    def on_body(self, chunk: bytes) -> None:
        """Keep the body, as long as it is not too long."""
        if self.is_complete or self._is_too_long:
            return
        self._size += len(chunk)
        if self._size > self._max_body_bytes:
            self._is_too_long = True
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Be done, unless it was an interim answer, after which the real one comes."""
        if self.has_headers and not self.is_complete:
            self.is_complete = True
            self._keeps_alive = self._parser.should_keep_alive()
        elif not self.has_headers:
            self.headers.clear()

    def _find(self, name: bytes) -> bytes:
        return next((value for known, value in self.headers if known.lower() == name), b"")
