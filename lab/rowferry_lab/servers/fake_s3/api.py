"""The operations of the fake S3 server: each is a method of its name. No I/O here."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from uuid import uuid4
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from rowferry_lab.servers.fake_s3.http import XML, Request, Response, refuse
from rowferry_lab.servers.fake_s3.store import NOTHING, Bucket, S3Error, Store, StoredObject, Upload, make_object

PAGE_KEYS = 1000
"""Keys in one page of a listing, and the most that may be asked for."""
RETURNS = {"\r": "&#13;"}
"""What a parser of XML would else read as the end of a line."""


class FakeApi:
    """Responds to requests from a store."""

    def __init__(self, store: Store) -> None:
        """Take what they work on."""
        self.store = store

    def answer(self, request: Request) -> Response:
        """Return the response, errors of S3 included."""
        operation = getattr(self, f"_{request.operation}", None)
        if operation is None:
            return refuse(request, 501, "NotImplemented")
        try:
            return operation(request)
        except S3Error as error:
            return refuse(request, *error.args)

    def _CreateBucket(self, request: Request) -> Response:
        self.store.buckets.setdefault(request.bucket, Bucket())
        return Response(200)

    def _HeadBucket(self, request: Request) -> Response:
        self.store.bucket(request.bucket)
        return Response(200)

    def _ListObjectsV2(self, request: Request) -> Response:
        """Return a page; its continuation token is the last key, or folder, of the page before."""
        query = request.query
        most = min(int(query.get("max-keys", PAGE_KEYS)), PAGE_KEYS)
        after = query.get("continuation-token", query.get("start-after", ""))
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        encode = quote if query.get("encoding-type") == "url" else escape
        found: dict[str, str] = {}
        more = ""
        for key, stored in self.store.bucket(request.bucket).walk(prefix, after):
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key[: end + len(delimiter)] if end >= 0 else key
            if name in found or name == after:
                continue
            if len(found) == most:
                more = f"<NextContinuationToken>{escape(next(reversed(found), ''))}</NextContinuationToken>"
                break
            if end >= 0:
                found[name] = f"<CommonPrefixes><Prefix>{encode(name)}</Prefix></CommonPrefixes>"
            else:
                found[name] = _describe_listed(encode(key), stored)
        listed = f"{''.join(found.values())}<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}"
        return result("ListBucketResult", listed + ("<EncodingType>url</EncodingType>" if encode is quote else ""))

    def _DeleteObjects(self, request: Request) -> Response:
        for key in find_texts(request.body, "Key"):
            self.store.bucket(request.bucket).remove(key)
        return result("DeleteResult", "")

    def _HeadObject(self, request: Request) -> Response:
        stored = self.store.read(request.bucket, request.key)
        check_match(request, b"if-match", stored)
        return Response(200, b"", stored.description, stored.size)

    def _GetObject(self, request: Request) -> Response:
        stored = self.store.read(request.bucket, request.key)
        check_match(request, b"if-match", stored)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header(b"range") or "")
        if asked is None or not stored.size:
            return Response(200, stored.body, stored.description)
        first, last = int(asked[1]), min(int(asked[2] or stored.size), stored.size - 1)
        if first >= stored.size:
            raise S3Error(416, "InvalidRange")
        span = f"content-range: bytes {first}-{last}/{stored.size}\r\n".encode()
        return Response(206, memoryview(stored.body)[first : last + 1], stored.description + span)

    def _PutObject(self, request: Request) -> Response:
        stored = self.receive(request, request.describe(), read_tagging(request))
        self.write(request, stored)
        return Response(200, headers=b'etag: "%s"\r\n' % stored.etag.encode())

    def _CopyObject(self, request: Request) -> Response:
        source = self.read_source(request)
        replaces = request.header(b"x-amz-metadata-directive") == "REPLACE"
        headers = request.describe() if replaces else source.headers
        replaces_tags = request.header(b"x-amz-tagging-directive") == "REPLACE"
        tags = read_tagging(request) if replaces_tags else source.tags
        stored = source.copy(headers, tags)
        self.write(request, stored)
        return copy_result("CopyObjectResult", stored)

    def _DeleteObject(self, request: Request) -> Response:
        self.store.bucket(request.bucket).remove(request.key)
        return Response(204)

    def _GetObjectTagging(self, request: Request) -> Response:
        tags = self.store.read(request.bucket, request.key).tags
        words = ((escape(name, RETURNS), escape(value, RETURNS)) for name, value in tags.items())
        found = (f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in words)
        return result("Tagging", f"<TagSet>{''.join(found)}</TagSet>")

    def _CreateMultipartUpload(self, request: Request) -> Response:
        self.store.bucket(request.bucket)
        upload_id = uuid4().hex
        upload = Upload(request.bucket, request.key, request.describe(), read_tagging(request))
        self.store.uploads[upload_id] = upload
        return result("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")

    def _UploadPart(self, request: Request) -> Response:
        part = self.receive(request, NOTHING, NOTHING)
        self._add_part(request, part)
        return Response(200, headers=b'etag: "%s"\r\n' % part.etag.encode())

    def _UploadPartCopy(self, request: Request) -> Response:
        source = self.read_source(request)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.header(b"x-amz-copy-source-range") or "")
        part = make_object(source.body[int(asked[1]) : int(asked[2]) + 1] if asked else source.body)
        self._add_part(request, part)
        return copy_result("CopyPartResult", part)

    def _add_part(self, request: Request, part: StoredObject) -> None:
        self.store.upload(request.query["uploadId"]).parts[int(request.query["partNumber"])] = part

    def _CompleteMultipartUpload(self, request: Request) -> Response:
        upload_id = request.query["uploadId"]
        upload = self.store.upload(upload_id)
        numbers = [int(text) for text in find_texts(request.body, "PartNumber")]
        stored = upload.assemble(numbers)
        etags = [text.strip('"') for text in find_texts(request.body, "ETag")]
        if etags and etags != [upload.parts[number].etag for number in numbers]:
            raise S3Error(400, "InvalidPart")
        self.write(request, stored)
        del self.store.uploads[upload_id]
        return result("CompleteMultipartUploadResult", f"<ETag>&quot;{stored.etag}&quot;</ETag>")

    def _AbortMultipartUpload(self, request: Request) -> Response:
        self.store.upload(request.query["uploadId"])
        del self.store.uploads[request.query["uploadId"]]
        return Response(204)

    def receive(self, request: Request, headers: Mapping[str, str], tags: Mapping[str, str]) -> StoredObject:
        """Return an object or a part made of the body."""
        expected = self.store.expect(request.key)
        if expected is not None and expected.body == request.body:
            return expected.copy(headers, tags)
        return make_object(request.body, headers, tags)

    def write(self, request: Request, stored: StoredObject) -> None:
        """Write an object. Raises S3Error when none may be there and one is."""
        bucket = self.store.bucket(request.bucket)
        if request.header(b"if-none-match") == "*" and bucket.find(request.key):
            raise S3Error(412, "PreconditionFailed")
        bucket.put(request.key, stored)

    def read_source(self, request: Request) -> StoredObject:
        """Return the object that is copied. Raises S3Error when there is none, or the condition does not hold."""
        source = unquote(request.header(b"x-amz-copy-source") or "").removeprefix("/")
        stored = self.store.read(*source.split("/", 1))
        check_match(request, b"x-amz-copy-source-if-match", stored)
        return stored


def _describe_listed(key: str, stored: StoredObject) -> str:
    """Return an object of a listing; `key`: as the listing writes it."""
    return (
        f"<Contents><Key>{key}</Key><ETag>&quot;{stored.etag}&quot;</ETag><Size>{stored.size}</Size>"
        f"<LastModified>{timestamp(stored.written)}</LastModified></Contents>"
    )


def check_match(request: Request, name: bytes, stored: StoredObject) -> None:
    """Raise S3Error when the condition in this header names another ETag."""
    wanted = request.header(name)
    if wanted is not None and wanted.strip('"') != stored.etag:
        raise S3Error(412, "PreconditionFailed")


def read_tagging(request: Request) -> dict[str, str]:
    """Return the tags that an object gets."""
    return dict(parse_qsl(request.header(b"x-amz-tagging") or "", keep_blank_values=True))


def timestamp(seconds: float) -> str:
    """Return a time as S3 writes it in XML."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def result(name: str, content: str) -> Response:
    """Return a document."""
    return Response(200, f'<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{content}</{name}>'.encode(), XML)


def copy_result(name: str, stored: StoredObject) -> Response:
    """Return what a copy is answered with."""
    when = timestamp(stored.written)
    return result(name, f"<ETag>&quot;{stored.etag}&quot;</ETag><LastModified>{when}</LastModified>")


def find_texts(body: bytes, name: str) -> list[str]:
    """Return the texts of all elements of this name in a document. Raises S3Error when it is none."""
    try:
        document: Any = ElementTree.fromstring(body)  # noqa: S314 - a client of our own sent it
    except ElementTree.ParseError:
        raise S3Error(400, "MalformedXML") from None
    return [element.text or "" for element in document.iter() if element.tag.rpartition("}")[2] == name]
