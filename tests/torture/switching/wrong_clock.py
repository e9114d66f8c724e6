"""A proxy before an S3 server whose clock is some seconds off: what it says of times is shifted, all by as much."""

import re
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime

from support.s3.proxy import Proxy, Streams
from support.s3.request_log import read_body, read_request, read_whole_answer, send

HEADER = re.compile(rb"(?i)(?<=\r\n)(date|last-modified): *([^\r\n]+)")
ELEMENT = re.compile(rb"(?<=<LastModified>)[^<]+")
XML = re.compile(rb"(?i)\r\ncontent-type: *(application|text)/xml")
LENGTH = re.compile(rb"(?i)(?<=\r\n)(content-length): *\d+")


class WrongClock(Proxy):
    """The running proxy; `responses` counts those of which a time was shifted."""

    def __init__(self, endpoint_url: str, shift: timedelta) -> None:
        super().__init__(endpoint_url)
        self._shift = shift
        self.responses = 0

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay one request, and its response with other times."""
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        server[1].write(head + await read_body(seen.headers, client[0]))
        head, body = await read_whole_answer(seen, server[0])
        shifted = HEADER.sub(self._shift_header, head)
        self.responses += shifted != head
        if XML.search(head) and ELEMENT.search(body):
            body = ELEMENT.sub(self._shift_element, body)
            shifted = LENGTH.sub(rb"\g<1>: %d" % len(body), shifted)
        return await send(client, shifted + body)

    def _shift_header(self, found: re.Match[bytes]) -> bytes:
        time = parsedate_to_datetime(found[2].decode()) + self._shift
        return found[1] + b": " + format_datetime(time, usegmt=True).encode()

    def _shift_element(self, found: re.Match[bytes]) -> bytes:
        time = datetime.fromisoformat(found[0].decode()) + self._shift
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


class WrongTimesOfObjects(WrongClock):
    """Only the times of objects are off: the `Date` is that of a proxy whose clock is right, as nginx sets it."""

    def _shift_header(self, found: re.Match[bytes]) -> bytes:
        return found[0] if found[1].lower() == b"date" else super()._shift_header(found)
