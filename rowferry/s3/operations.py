"""Every S3 request of the workers as plain data, percent-encoded; `client` signs and sends it."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from urllib.parse import quote
from xml.sax.saxutils import escape

from msgspec import Struct

from rowferry.errors import ObjectRejected
from rowferry.http.pipe import Pipe
from rowferry.keys import MAX_KEY_BYTES
from rowferry.plan import CannedAcl, SideName

Pairs = tuple[tuple[str, str], ...]

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
"""Of the XML that S3 takes."""

FORBID_OVERWRITE = ("If-None-Match", "*")
"""The header of a write that is refused with 412 where an object stands, by servers that heed it."""

REQUESTER_PAYS = ("x-amz-request-payer", "requester")
"""The header without which a bucket with Requester Pays refuses a request; a copy has it for its source as well.
Source: Amazon S3 User Guide, "Using Requester Pays general purpose buckets"."""

COPY_LIMIT_BYTES = 5 * 1024**3
"""The most that CopyObject copies. Source: Amazon S3 API Reference, "CopyObject"."""
PUT_LIMIT_BYTES = 1024**3
"""The largest object that goes in one PUT: so much is sent anew after a failure, and many proxies bound bodies."""
BOTH_SIDES = frozenset({"CopyObject", "UploadPartCopy"})
"""Operations that read one side and write the other: their names say enough."""
WRITES = BOTH_SIDES | {"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"}
"""Operations that write an object, or bring parts of one."""

_is_plain = re.compile(r"[A-Za-z0-9._~/-]+").fullmatch
"""Tells keys that nothing has to be encoded in: most of them."""


class Request(Struct, frozen=True, gc=False):
    """One S3 request to one side's bucket; the bucket, host and signature are added by the client that sends it."""

    side: SideName
    operation: str
    """The S3 API's name of it, "CopyObject" for instance."""
    method: str
    key: str
    """The object's key, byte for byte as rows hold it."""
    target: str
    """Percent-encoded key and query: what follows `/bucket/` (or `/` on a virtual host) in the request line."""
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes = b""
    source: Pipe | None = None
    """What the body comes from piece by piece, in the place of `body`."""
    stream_above: int | None = None
    """A response whose body is announced to have more bytes than this returns at its headers, with `stream`."""
    heeds_condition: bool = True
    """Whether the server is known to heed the condition of a write."""


def may_be_resent(request: Request) -> bool:
    """Return whether a request may be sent twice without a look between.

    A completion that was carried out would be refused the second time. A write that no condition protects for certain
    might replace what was written meanwhile.
    """
    if request.operation in {"CopyObject", "PutObject"}:
        return request.heeds_condition and FORBID_OVERWRITE in request.headers
    return request.method != "POST"


def need_no_encoding(keys: Sequence[str]) -> bool:
    """Return whether `encode_key` returns each of these keys as it is."""
    return all(map(_is_plain, keys)) and max(map(len, keys), default=0) <= MAX_KEY_BYTES and ".." not in "/".join(keys)


def encode_key(key: str) -> str:
    """Return `key` percent-encoded byte for byte, as SigV4 wants it: all but letters, digits, `-._~` and `/`.

    Nothing is normalised: NFC and NFD, `//`, a leading `/` and `..` stay what they are. Dots must stay bare, since
    servers rebuild the signed path with unreserved characters bare (AWS Signature Version 4, "canonical URI").
    Raises ObjectRejected for what no S3 server can store: an empty key, more than 1,024 bytes, a lone surrogate,
    or `..` that climb above the key's own root (Amazon S3 User Guide, "Naming Amazon S3 objects").
    """
    if _is_plain(key) and ".." not in key and len(key) <= MAX_KEY_BYTES:
        return key
    try:
        encoded = key.encode()
    except UnicodeEncodeError as error:
        raise ObjectRejected("InvalidKey", f"the key {key!r} is not valid Unicode") from error
    if not encoded:
        raise ObjectRejected("InvalidKey", "an object's key cannot be empty")
    if len(encoded) > MAX_KEY_BYTES:
        raise ObjectRejected("KeyTooLongError", f"the key has {len(encoded)} bytes, S3 allows {MAX_KEY_BYTES}")
    if ".." in key and _climbs_above_root(key):
        raise ObjectRejected("InvalidKey", f"the key {key!r} climbs above its bucket with '..', which S3 refuses")
    return quote(encoded, safe="/")


def _climbs_above_root(key: str) -> bool:
    """Return whether, read from left to right, `..` segments ever outnumber the other segments of `key`.

    `.` and empty segments count for nothing here, as in RFC 3986 §5.2.4: a server or proxy that folds them must
    not be led into another bucket.
    """
    depth = 0
    for segment in key.split("/"):
        if segment == "..":
            depth -= 1
        elif segment not in {"", "."}:
            depth += 1
        if depth < 0:
            return True
    return False


def head_bucket(side: SideName) -> Request:
    """Return the request that asks whether a side's bucket is there and may be listed; the response has no body."""
    return Request(side, "HeadBucket", "HEAD", "", "")


def list_first_object(side: SideName, prefix: str = "") -> Request:
    """Return the request for the first key that begins with `prefix`: a refusal of it says why, in a body."""
    query = (("list-type", "2"), ("max-keys", "1"), ("prefix", prefix))
    return Request(side, "ListObjectsV2", "GET", "", _encode_query(query), query)


def list_keys(
    side: SideName,
    prefix: str,
    *,
    after: str = "",
    token: str | None = None,
    max_keys: int = 1000,
    by_folder: bool = False,
) -> Request:
    """Return the request for at most `max_keys` keys that begin with `prefix` and come behind `after`, in their order.

    `token` continues a listing in the place of `after`. Keys come percent-encoded: not every one can be written in XML.
    `by_folder`: keys that have a `/` behind the prefix come as folders, each once.
    """
    query: Pairs = (("encoding-type", "url"), ("list-type", "2"), ("max-keys", str(max_keys)), ("prefix", prefix))
    if by_folder:
        query = (("delimiter", "/"), *query)
    if token is not None:
        query = (("continuation-token", token), *query)
    elif after:
        query = (*query, ("start-after", after))
    return Request(side, "ListObjectsV2", "GET", "", _encode_query(query), query)


def _build(
    side: SideName,
    operation: str,
    method: str,
    key: str,
    *,
    query: Pairs = (),
    headers: Pairs = (),
    body: bytes = b"",
    source: Pipe | None = None,
) -> Request:
    target = encode_key(key)
    if query:
        target += _encode_query(query)
    return Request(side, operation, method, key, target, query, headers, body, source)


def _encode_query(query: Pairs) -> str:
    """Return a query with its question mark; a name without a value is signed and sent as `name=`."""
    return "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)


def _encode_source(bucket: str, key: str, etag: str | None) -> Pairs:
    """Return the headers that name a copy's source and, where `etag` is given, pin it to that version."""
    source = ("x-amz-copy-source", f"/{_encode_bucket(bucket)}/{encode_key(key)}")
    return (source,) if etag is None else (source, ("x-amz-copy-source-if-match", f'"{etag}"'))


@cache
def _encode_bucket(bucket: str) -> str:
    return quote(bucket, safe="")


def _forbid_overwrite(if_none_match: bool) -> Pairs:
    return (FORBID_OVERWRITE,) if if_none_match else ()


def _upload_part_query(upload_id: str, part_number: int) -> Pairs:
    return (("partNumber", str(part_number)), ("uploadId", upload_id))


def head_object(side: SideName, key: str, *, if_match: str | None = None, with_checksum: bool = False) -> Request:
    """Return the request for an object's headers; for a missing object the response is 404 without a body.

    `if_match` is an unquoted ETag; the response is 412 when the object has another. `with_checksum`
    asks for the checksums that the server has stored.
    """
    headers: Pairs = () if if_match is None else (("If-Match", f'"{if_match}"'),)
    if with_checksum:
        headers += (("x-amz-checksum-mode", "ENABLED"),)
    return _build(side, "HeadObject", "HEAD", key, headers=headers)


def copy_object(
    key: str,
    *,
    source_bucket: str,
    source_key: str,
    if_none_match: bool,
    source_etag: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Request:
    """Return the request by which the production server copies a legacy object of at most 5 GiB to `key`.

    `if_none_match` forbids overwriting (not every server honours it), `source_etag` (unquoted) pins the source.
    Metadata, content headers and tags are copied with the object unless `headers` have another directive: COPY is the
    default of both.
    """
    headers = (*_encode_source(source_bucket, source_key, source_etag), *headers, *_forbid_overwrite(if_none_match))
    return _build("production", "CopyObject", "PUT", key, headers=headers)


def get_object(
    side: SideName,
    key: str,
    *,
    first_byte: int | None = None,
    last_byte: int | None = None,
    if_match: str | None = None,
) -> Request:
    """Return the request for an object's bytes, or for those from `first_byte` to `last_byte`, both included.

    `last_byte` None means the end; `if_match` is an unquoted ETag; the response is 412 when the object has another.
    """
    headers: Pairs = ()
    if first_byte is not None or last_byte is not None:
        end = "" if last_byte is None else str(last_byte)
        headers = (("Range", f"bytes={first_byte or 0}-{end}"),)
    if if_match is not None:
        headers += (("If-Match", f'"{if_match}"'),)
    return _build(side, "GetObject", "GET", key, headers=headers)


def put_object(
    key: str,
    body: bytes,
    *,
    headers: Iterable[tuple[str, str]] = (),
    if_none_match: bool,
    source: Pipe | None = None,
) -> Request:
    """Return the request that writes `body`, or what `source` brings, to the production bucket.

    `headers`: content type, metadata, tags.
    """
    headers = (*headers, *_forbid_overwrite(if_none_match))
    return _build("production", "PutObject", "PUT", key, headers=headers, body=body, source=source)


def get_object_tagging(side: SideName, key: str) -> Request:
    """Return the request for an object's tags; `responses.read_tags` reads the response."""
    return _build(side, "GetObjectTagging", "GET", key, query=(("tagging", ""),))


def put_object_tagging(key: str, tags: Pairs, *, version: str | None = None) -> Request:
    """Return the request that gives a production object these tags, and takes all others from it.

    `version`: of the object that is meant, which needs s3:PutObjectVersionTagging; None: the last one.
    """
    listed = "".join(f"<Tag><Key>{_escape(name)}</Key><Value>{_escape(value)}</Value></Tag>" for name, value in tags)
    body = f'<Tagging xmlns="{NAMESPACE}"><TagSet>{listed}</TagSet></Tagging>'.encode()
    headers = (("Content-Type", "application/xml"), digest_header(body))
    query: Pairs = (("tagging", ""), *((("versionId", version),) if version else ()))
    return _build("production", "PutObjectTagging", "PUT", key, query=query, headers=headers, body=body)


def content_md5(digest: str) -> tuple[str, str]:
    """Return the header by which a server checks what it receives, given the MD5 in hexadecimal.

    Buckets with Object Lock demand it.
    """
    return "Content-MD5", base64.b64encode(bytes.fromhex(digest)).decode()


def digest_header(body: bytes) -> tuple[str, str]:
    """Return the same header of a body."""
    return content_md5(hashlib.md5(body, usedforsecurity=False).hexdigest())


def _escape(text: str) -> str:
    """Return a text as XML has it; a parser would else read a carriage return as the end of a line."""
    return escape(text, {"\r": "&#13;"})


def get_object_acl(side: SideName, key: str) -> Request:
    """Return the request for an object's access control list; `acl.read_grants` reads the response."""
    return _build(side, "GetObjectAcl", "GET", key, query=(("acl", ""),))


def put_object_acl(key: str, acl: CannedAcl) -> Request:
    """Return the request that gives a production object a canned ACL, in the place of its own."""
    return _build("production", "PutObjectAcl", "PUT", key, query=(("acl", ""),), headers=(("x-amz-acl", acl),))


def create_multipart_upload(key: str, *, headers: Iterable[tuple[str, str]] = ()) -> Request:
    """Return the request that begins a multipart upload; what describes the object must be in `headers` here."""
    return _build("production", "CreateMultipartUpload", "POST", key, query=(("uploads", ""),), headers=(*headers,))


def upload_part(
    key: str,
    body: bytes,
    *,
    upload_id: str,
    part_number: int,
    headers: Iterable[tuple[str, str]] = (),
    source: Pipe | None = None,
) -> Request:
    """Return the request that sends one part, `body` or what `source` brings; `part_number` counts from 1 to 10,000."""
    query = _upload_part_query(upload_id, part_number)
    return _build("production", "UploadPart", "PUT", key, query=query, headers=(*headers,), body=body, source=source)


def upload_part_copy(
    key: str,
    *,
    source_bucket: str,
    source_key: str,
    source_etag: str | None,
    first_byte: int,
    last_byte: int,
    upload_id: str,
    part_number: int,
    headers: Iterable[tuple[str, str]] = (),
) -> Request:
    """Return the request by which the server copies bytes `first_byte` to `last_byte`, both included, as one part.

    `source_etag` pins the source, so that all parts are of one object; None where there is one part.
    """
    source = _encode_source(source_bucket, source_key, source_etag)
    headers = (*source, ("x-amz-copy-source-range", f"bytes={first_byte}-{last_byte}"), *headers)
    query = _upload_part_query(upload_id, part_number)
    return _build("production", "UploadPartCopy", "PUT", key, query=query, headers=headers)


def complete_multipart_upload(
    key: str, *, upload_id: str, parts: Iterable[tuple[int, str]], if_none_match: bool
) -> Request:
    """Return the request that makes an object of `parts`: (number, unquoted ETag) in rising order of the number."""
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{escape(etag)}&quot;</ETag></Part>"
        for number, etag in parts
    )
    body = f'<CompleteMultipartUpload xmlns="{NAMESPACE}">{listed}</CompleteMultipartUpload>'.encode()
    headers = (("Content-Type", "application/xml"), *_forbid_overwrite(if_none_match))
    query = (("uploadId", upload_id),)
    return _build("production", "CompleteMultipartUpload", "POST", key, query=query, headers=headers, body=body)


def list_parts(key: str, *, upload_id: str) -> Request:
    """Return the request for a part of an upload, which tells whether the server still has that."""
    return _build("production", "ListParts", "GET", key, query=(("max-parts", "1"), ("uploadId", upload_id)))


def list_multipart_uploads(side: SideName, prefix: str = "", *, after: tuple[str, str] | None = None) -> Request:
    """Return the request for a side's unfinished uploads to keys that begin with `prefix`, at most 1,000 of them.

    `after`: the key and the id of the upload behind which it goes on. Keys come percent-encoded where the server can.
    """
    query: Pairs = (("encoding-type", "url"), ("prefix", prefix), ("uploads", ""))
    if after is not None:
        query = (*query, ("key-marker", after[0]), ("upload-id-marker", after[1]))
    return Request(side, "ListMultipartUploads", "GET", "", _encode_query(query), query)


def abort_multipart_upload(key: str, *, upload_id: str) -> Request:
    """Return the request that gives an upload up and frees its parts; it touches no object."""
    return _build("production", "AbortMultipartUpload", "DELETE", key, query=(("uploadId", upload_id),))
