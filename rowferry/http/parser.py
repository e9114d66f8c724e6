"""Parses one HTTP/1.1 response as its bytes come in. No I/O."""

from functools import lru_cache

import httptools

from rowferry.errors import RESPONSE_TOO_LONG, ObjectRejected, ServerFault

END_OF_HEADERS = b"\r\n\r\n"
PLAIN = frozenset({200, 206})
"""The statuses whose body is as long as Content-Length says."""
MAX_HEADER_BYTES = 256 * 1024
"""No S3 server sends more."""
LISTS = ("x-amz-meta-", "connection", "transfer-encoding")
"""What the names of headers begin with that may come in several lines, which make one list (RFC 9110, 5.2); the SDKs
join metadata as well. Of any other header the last line counts."""


@lru_cache(maxsize=1024)
def _read_name(name: bytes) -> str:
    """Return a header's name in lower case. A server sends few of them, again and again."""
    return name.decode("latin-1").lower()


class ResponseParser:
    """Takes bytes until the response is complete. httptools calls the methods that begin with `on_`.

    The body of a success that says how long it is does not pass through httptools, which would copy it.
    """

    # What most responses leave as it is costs nothing to set up here.
    _missing = 0
    """Bytes of the body that are still to come, where httptools does not read it."""
    _size = 0
    _unread_bytes = 0
    """Bytes since the last piece of body: headers, trailers, chunk lengths."""
    _refusal: ObjectRejected | ServerFault | None = None
    _keeps_alive = False
    _has_surplus = False
    status = 0
    has_headers = False
    """Whether all headers are there; those of an interim response (1xx) do not count."""
    is_streamed = False
    """Whether the body is to be taken piece by piece, by `take_pieces`."""
    length = 0
    """That of a streamed body, in bytes."""
    buffered_bytes = 0
    """What has come of a streamed body and was not taken."""
    is_complete = False
    has_begun = False
    """Whether any byte has come."""

    def __init__(self, *, is_head: bool, max_body_bytes: int, stream_above: int | None = None) -> None:
        """`is_head`: there is no body, whatever the headers say. A body longer than `max_body_bytes` is refused.

        `stream_above`: a success whose headers announce more bytes of body is streamed, however long it is.
        """
        self._is_head = is_head
        self._max_body_bytes = max_body_bytes
        self._stream_above = stream_above
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self.headers: dict[str, str] = {}
        """By their names in lower case."""

    @property
    def leaves_connection_usable(self) -> bool:
        """Return whether another request may follow on the connection: it stays open, and nothing came unasked."""
        return self._keeps_alive and not self._has_surplus

    @property
    def ends_with_connection(self) -> bool:
        """Return whether this is a refusal without a length, which ends with the connection.

        A success must have a length: else a body that was cut off would pass for a whole one.
        """
        framed = self.headers.get("content-length") or self.headers.get("transfer-encoding")
        return self.has_headers and self.status >= 300 and not framed

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises ServerFault when they are no HTTP, ObjectRejected when the body is too long."""
        self.has_begun = True
        while not self.has_headers and (end := data.find(END_OF_HEADERS)) >= 0:
            end += len(END_OF_HEADERS)
            self._feed(data[:end])
            data = data[end:]
        if self._missing and data:
            self._take(data)
        elif data:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Have httptools read headers, chunks and whatever else is not a plain body."""
        assert self._parser is not None
        self._unread_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                raise ServerFault("UnreadableResponse", f"the server sent no HTTP response ({error})") from error
            self._has_surplus = True
        if self._unread_bytes > MAX_HEADER_BYTES and self._refusal is None and not self.is_complete:
            self._refuse_headers()
        if self._refusal is not None:
            raise self._refusal

    def _take(self, data: bytes) -> None:
        """Take bytes of a plain body; what comes after it came unasked."""
        if len(data) > self._missing:
            self._has_surplus = True
            data = data[: self._missing]
        self._missing -= len(data)
        self._chunks.append(data)
        self.buffered_bytes += len(data)
        self.is_complete = not self._missing

    def take_pieces(self) -> list[bytes]:
        """Return what has come of a streamed body since the last call, and keep nothing of it."""
        pieces, self._chunks = self._chunks, []
        self.buffered_bytes = 0
        return pieces

    def take_body(self) -> bytes:
        """Return the body, and keep nothing of it."""
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        return body

    def close(self) -> None:
        """Break the reference cycle with httptools, which would keep the body until the next garbage collection."""
        self._parser = None

    def on_message_begin(self) -> None:
        """Note bytes after the end of the response."""
        self._has_surplus = self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers are ignored."""
        if self.has_headers:
            return
        known = _read_name(name)
        text = value.decode("utf-8", "surrogateescape")
        if known in self.headers and known.startswith(LISTS):
            text = f"{self.headers[known]}, {text}"
        self.headers[known] = text

    def on_headers_complete(self) -> None:
        """Find out whether a body follows, and how long it is."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if self.has_headers or status < 200:
            return
        if self._unread_bytes > MAX_HEADER_BYTES:
            self._refuse_headers()
        self.status = status
        self.has_headers = True
        if self._is_head:  # httptools would wait for a body
            self.is_complete = True
            tokens = self.headers.get("connection", "").lower().replace(" ", "").split(",")
            self._keeps_alive = self._parser.get_http_version() == "1.1" and "close" not in tokens
        elif (found := self.headers.get("content-length", "")).isdigit() and found.isascii():
            self._expect_body(int(found))

    def _expect_body(self, length: int) -> None:
        """Decide how a body of so many bytes is read: streamed, at once, or by httptools; or that it is refused."""
        assert self._parser is not None
        is_plain = self.status in PLAIN and length > 0 and not self.headers.get("transfer-encoding")
        self.is_streamed = is_plain and self._stream_above is not None and length > self._stream_above
        if length > self._max_body_bytes and not self.is_streamed:
            self._refuse_body()
        elif is_plain:
            self._keeps_alive = self._parser.should_keep_alive()
            self.length = self._missing = length

    def on_body(self, chunk: bytes) -> None:
        """Keep a piece of the body, unless the whole is too long."""
        if self.is_complete:
            self._has_surplus = True
            return
        if self._missing:  # it came in one piece with the end of the headers
            self._take(chunk)
            return
        self._unread_bytes = 0
        self._size += len(chunk)
        if self._size > self._max_body_bytes:
            self._refuse_body()
        else:
            self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Be complete, unless it was an interim response: the real one follows."""
        assert self._parser is not None
        if not self.has_headers:
            self.headers.clear()
        elif not self.is_complete:
            self.is_complete = True
            self._keeps_alive = self._parser.should_keep_alive()

    def _refuse_headers(self) -> None:
        self._refusal = ServerFault("UnreadableResponse", f"the headers are longer than {MAX_HEADER_BYTES} bytes")

    def _refuse_body(self) -> None:
        self._chunks.clear()
        words = f"the response is longer than {self._max_body_bytes} bytes; read the object in ranges"
        self._refusal = ObjectRejected(RESPONSE_TOO_LONG, words)
