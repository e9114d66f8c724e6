"""What may answer in the place of an S3 server, and to which requests."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from support.s3.request_log import LoggedRequest, s3_error


class Outage(NamedTuple):
    """What is answered, and to what."""

    matches: Callable[[LoggedRequest], bool]
    answer: bytes


def page(status: str, headers: str = "", *, body: bytes = b"<html><body>Please log in.</body></html>") -> bytes:
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def everything(_: LoggedRequest) -> bool:
    return True


def writes(seen: LoggedRequest) -> bool:
    return seen.writes_object


OUTAGES: Mapping[str, Outage] = {
    "302 to a login page": Outage(everything, page("302 Found", "Location: https://login.example.com/\r\n")),
    "405 to writes": Outage(writes, page("405 Not Allowed")),
    "400 of a balancer": Outage(everything, page("400 Bad Request")),
    "502 of a balancer": Outage(everything, page("502 Bad Gateway")),
    "500 to writes": Outage(writes, s3_error(500, "InternalError")),
    "captive portal": Outage(everything, page("200 OK")),
    "garbage": Outage(everything, b"220 mail.example.com ESMTP ready\r\n\r\n"),
    "connections that break": Outage(everything, b""),
    "404 without a body": Outage(everything, page("404 Not Found", body=b"")),
    "403 of a proxy": Outage(everything, page("403 Forbidden")),
}
