"""What the S3 server in memory answers: the requests that a migration within one endpoint and its audit send."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from rowferry_lab.servers.memory_store import KEPT_HEADERS, Refused, Store, StoredObject

PAGE_KEYS = 1000
"""Keys in one answer to ListObjectsV2; also the most that may be asked for."""
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request, taken apart."""

    method: str
    bucket: str
    key: str
    """Empty for a request about the bucket."""
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @classmethod
    def read(cls, head: str, body: bytes) -> "Call":
        """Take the head of a request apart: its request line and headers."""
        request_line, *lines = head.split("\r\n")
        method, target, _ = request_line.split(" ", 2)
        parts = urlsplit(f"//host{target}")
        bucket, _, key = parts.path[1:].partition("/")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return cls(method, unquote(bucket), unquote(key), query, headers, body)


def answer(store: Store, call: Call) -> Reply:
    """Return the answer to a request, an S3 error included."""
    try:
        return _answer_object(store, call) if call.key else _answer_bucket(store, call)
    except Refused as refused:
        body = f"<Error><Code>{refused.code}</Code><Message>{refused.code}</Message></Error>".encode()
        return Reply(refused.status, {"content-type": "application/xml"}, body)


def _answer_bucket(store: Store, call: Call) -> Reply:
    match call.method:
        case "PUT" if not call.query:
            store.make_bucket(call.bucket)
        case "HEAD":
            store.check_bucket(call.bucket)
        case "GET" if call.query.get("list-type") == "2":
            return _list(store, call)
        case "POST" if "delete" in call.query:
            return _delete_many(store, call)
        case _:
            raise Refused(501, "NotImplemented")
    return Reply()


def _answer_object(store: Store, call: Call) -> Reply:
    match call.method:
        case "GET" if "tagging" in call.query:
            return _show_tags(store.read(call.bucket, call.key))
        case "GET" | "HEAD" if not call.query.keys() - {"x-id"}:
            return _show(store.read(call.bucket, call.key), call)
        case "PUT" if not call.query.keys() - {"x-id"}:
            return _copy(store, call) if "x-amz-copy-source" in call.headers else _put(store, call)
        case "DELETE" if not call.query.keys() - {"x-id"}:
            store.delete(call.bucket, call.key)
            return Reply(204)
        case _:
            raise Refused(501, "NotImplemented")


def _put(store: Store, call: Call) -> Reply:
    if "aws-chunked" in call.headers.get("content-encoding", ""):
        raise Refused(501, "NotImplemented")
    said = {name: value for name, value in call.headers.items() if _describes(name)}
    stored = StoredObject(call.body, said, call.headers.get("x-amz-tagging", ""))
    store.write(call.bucket, call.key, stored, if_none_match=call.headers.get("if-none-match") == "*")
    return Reply(headers={"etag": f'"{stored.etag}"'})


def _copy(store: Store, call: Call) -> Reply:
    """Copy an object with all that describes it. Raises Refused for directives that would have it otherwise."""
    if "REPLACE" in {call.headers.get(f"x-amz-{what}-directive") for what in ("metadata", "tagging")}:
        raise Refused(501, "NotImplemented")
    bucket, _, key = unquote(call.headers["x-amz-copy-source"]).removeprefix("/").partition("/")
    source = store.read(bucket, key)
    if _etag(call, "x-amz-copy-source-if-match") not in {None, source.etag}:
        raise Refused(412, "PreconditionFailed")
    stored = StoredObject(source.body, source.headers, source.tagging)
    store.write(call.bucket, call.key, stored, if_none_match=call.headers.get("if-none-match") == "*")
    result = f"<ETag>&quot;{stored.etag}&quot;</ETag><LastModified>{stored.written.isoformat()}</LastModified>"
    return _xml(f'<CopyObjectResult xmlns="{NAMESPACE}">{result}</CopyObjectResult>')


def _show(stored: StoredObject, call: Call) -> Reply:
    """Return the object, or the range of its bytes that was asked for."""
    if _etag(call, "if-match") not in {None, stored.etag}:
        raise Refused(412, "PreconditionFailed")
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", ""))
    if asked is None:
        return Reply(200, stored.describe(), stored.body)
    first, size = int(asked[1]), len(stored.body)
    if first >= size:
        raise Refused(416, "InvalidRange")
    last = min(int(asked[2]), size - 1) if asked[2] else size - 1
    return Reply(
        206, {**stored.describe(), "content-range": f"bytes {first}-{last}/{size}"}, stored.body[first : last + 1]
    )


def _show_tags(stored: StoredObject) -> Reply:
    tags = "".join(
        f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>"
        for name, value in parse_qsl(stored.tagging, keep_blank_values=True)
    )
    return _xml(f'<Tagging xmlns="{NAMESPACE}"><TagSet>{tags}</TagSet></Tagging>')


def _list(store: Store, call: Call) -> Reply:
    """Return a page of the listing; its continuation token is the last key of the page before."""
    most = min(int(call.query.get("max-keys", PAGE_KEYS)), PAGE_KEYS)
    after = call.query.get("continuation-token", call.query.get("start-after", ""))
    in_url = call.query.get("encoding-type") == "url"
    contents, count, last, more = "", 0, "", False
    for key, stored in store.walk(call.bucket, prefix=call.query.get("prefix", ""), after=after):
        if count == most:
            more = True
            break
        contents += (
            f"<Contents><Key>{quote(key) if in_url else escape(key)}</Key><ETag>&quot;{stored.etag}&quot;</ETag>"
            f"<Size>{len(stored.body)}</Size><LastModified>{stored.written.isoformat()}</LastModified></Contents>"
        )
        count, last = count + 1, key
    contents += f"<KeyCount>{count}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
    contents += f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if more else ""
    contents += "<EncodingType>url</EncodingType>" if in_url else ""
    return _xml(f'<ListBucketResult xmlns="{NAMESPACE}">{contents}</ListBucketResult>')


def _delete_many(store: Store, call: Call) -> Reply:
    for key in ElementTree.fromstring(call.body).iter(f"{{{NAMESPACE}}}Key"):  # noqa: S314 - our own client's
        store.delete(call.bucket, key.text or "")
    return _xml(f'<DeleteResult xmlns="{NAMESPACE}"/>')


def _describes(name: str) -> bool:
    return name in KEPT_HEADERS or name.startswith("x-amz-meta-")


def _etag(call: Call, name: str) -> str | None:
    value = call.headers.get(name)
    return None if value is None else value.strip('"')


def _xml(text: str) -> Reply:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return Reply(200, {"content-type": "application/xml"}, body)
