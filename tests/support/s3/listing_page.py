"""A page of a listing as an S3 server says it."""

from collections.abc import Sequence
from urllib.parse import quote_plus
from xml.sax.saxutils import escape

from rowferry.s3.responses import Response


def page(keys: Sequence[str], *, more: bool = False, token: str = "", encoded: bool = True) -> Response:
    """A page as servers write it."""
    texts = [quote_plus(key) if encoded else escape(key) for key in keys]
    body = "".join(f"<Contents><Key>{text}</Key><Size>1</Size></Contents>" for text in texts)
    body += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    body += f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    body += "<EncodingType>url</EncodingType>" if encoded else ""
    return Response(200, body=f'<ListBucketResult xmlns="http://s3/">{body}</ListBucketResult>'.encode())
