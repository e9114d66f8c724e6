"""A page of a listing as an S3 server says it."""

from collections.abc import Sequence
from urllib.parse import quote_plus
from xml.sax.saxutils import escape

from rowferry.s3.responses import Response
from support.s3.request_log import LoggedRequest


def page(keys: Sequence[str], *, more: bool = False, token: str = "", encoded: bool = True) -> Response:
    """A page as servers write it."""
    texts = [quote_plus(key) if encoded else escape(key) for key in keys]
    body = "".join(f"<Contents><Key>{text}</Key><Size>1</Size></Contents>" for text in texts)
    body += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    body += f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    body += "<EncodingType>url</EncodingType>" if encoded else ""
    return Response(200, body=f'<ListBucketResult xmlns="http://s3/">{body}</ListBucketResult>'.encode())


def is_listing(seen: LoggedRequest) -> bool:
    return "list-type" in seen.query


def http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
