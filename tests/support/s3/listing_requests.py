"""Requests for a listing, as a proxy in between sees them."""

from support.s3.request_log import LoggedRequest


def is_listing(seen: LoggedRequest) -> bool:
    return "list-type" in seen.query


def http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
