"""Is a response the object as it is stored, or what a proxy on the way has made of it? No I/O.

Objects are asked for with `Accept-Encoding: gzip`: without it R2 and GCS inflate those that are stored compressed. A
compressing proxy takes that for a wish, as nginx and Apache do for text. Nothing is decoded here, so everything else is
asked for with `identity`, and an object that was compressed is asked for once more so.
"""

import re
from typing import Literal

from rowferry.errors import ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response

Accepts = Literal["gzip", "identity"]
"""What a request says that it takes."""
OBJECTS = frozenset({"GetObject", "HeadObject"})
"""The operations that an object's bytes, or their length, are asked for with."""
OTHER: dict[Accepts, Accepts] = {"gzip": "identity", "identity": "gzip"}

_is_md5 = re.compile(r'"[0-9a-f]{32}"').fullmatch
_ENCRYPTION = "x-amz-server-side-encryption"
_COMPARED = ("etag", "content-encoding")


def strip_framing(encoding: str) -> str:
    """Return a Content-Encoding without `aws-chunked`, which some servers keep of how a body was sent.

    Source: AWS Signature Version 4, "Transferring payload in multiple chunks": it is no property of the object.
    """
    tokens = (token.strip() for token in encoding.split(","))
    return ",".join(token for token in tokens if token and token.lower() != "aws-chunked")


def judge_encoding(request: Request, response: Response) -> Literal["stored", "recoded", "unclear"]:
    """Return whether a success is an object as it is stored; `unclear`: the HEAD of the same object tells.

    A range says itself which bytes of how many it has. A digest is held against the bytes by the copy itself.
    """
    headers = response.headers
    if request.operation == "HeadObject":
        return "recoded" if response.content_length is None else "stored"
    if request.operation != "GetObject" or response.status == 206:
        return "stored"
    is_framed, is_encoded = "content-length" in headers, bool(strip_framing(headers.get("content-encoding", "")))
    if not is_framed:
        return "recoded" if is_encoded or headers.get("etag", "").startswith("W/") else "unclear"
    return (
        "unclear" if is_encoded and not (_is_md5(headers.get("etag", "")) and _ENCRYPTION not in headers) else "stored"
    )


def is_same_object(response: Response, head: Response) -> bool:
    """Return whether the response to a GET is what the HEAD of the object tells."""
    if any(response.headers.get(name) != head.headers.get(name) for name in _COMPARED):
        return False
    return response.body_bytes == head.content_length


def describe_recoding(request: Request, response: Response) -> ServerFault:
    """Return the error where an object does not come as it is stored, however it is asked for."""
    if response.content_length is None and "content-encoding" not in response.headers:
        method = request.method
        return ServerFault("NoContentLength", f"the server answered {method} without the size of the object")
    words = "a proxy before the server compresses objects, or inflates them, whatever it is asked for"
    return ServerFault("Recoded", f"{words}: switch that off there (nginx: gzip off; Apache: SetEnv no-gzip 1)")
