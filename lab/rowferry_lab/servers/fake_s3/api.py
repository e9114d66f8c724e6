"""The operations of the fake S3 server: each takes a request and returns a response. No I/O here."""

import gzip
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote
from xml.sax.saxutils import escape

from rowferry_lab.servers.fake_s3.http import COPIES, OPERATIONS, XML, Request, Response, refuse, respond, respond_with
from rowferry_lab.servers.fake_s3.operations import copy_result, parse, result, timestamp
from rowferry_lab.servers.fake_s3.settings import Deviations
from rowferry_lab.servers.fake_s3.store import NOTHING, Bucket, S3Error, Store, StoredObject
from rowferry_lab.servers.fake_s3.uploads import UploadOperations

PAGE_KEYS = 1000
"""Keys in one page of a listing, and the most that may be asked for."""
LEAST_GZIPPED_BYTES = 1000
STORAGE = ("x-amz-storage-class", "x-amz-server-side-encryption")
"""How the headers begin that a copy does not have from its source."""
_GROUPS = "<URI>http://acs.amazonaws.com/groups/global/"
ACLS = {
    "public-read": [(f"{_GROUPS}AllUsers</URI>", "READ")],
    "public-read-write": [(f"{_GROUPS}AllUsers</URI>", "READ"), (f"{_GROUPS}AllUsers</URI>", "WRITE")],
    "authenticated-read": [(f"{_GROUPS}AuthenticatedUsers</URI>", "READ")],
    "to-an-account": [("<ID>another</ID>", "READ")],
}
"""What a canned ACL grants, its owner aside; the last is not one of S3's."""
RETURNS = {"\r": "&#13;"}
"""What a parser of XML would else read as the end of a line."""
LOGIN_PAGE = b"<html><body>please log in: <a href='ETag'>ETag</a></body></html>"


class FakeApi(UploadOperations):
    """Responds to requests from a store."""

    def __init__(self, store: Store, deviations: Deviations) -> None:
        """Take both."""
        super().__init__(store, deviations)
        self._handlers: dict[str, Callable[[Request], Response]] = {
            name: getattr(self, f"_{name}") for name in (*OPERATIONS.values(), *COPIES.values())
        }

    def answer(self, request: Request) -> Response:
        """Return the response, errors of S3 included."""
        handler = self._handlers.get(request.operation)
        if handler is None:
            return refuse(request, 501, "NotImplemented")
        if request.operation == self.deviations.login_page_for:
            page = b"" if request.method == "HEAD" else LOGIN_PAGE
            return respond(200, page, b"content-type: text/html\r\n", length=len(LOGIN_PAGE))
        try:
            response = handler(request)
        except S3Error as error:
            return refuse(request, error.status, error.code)
        may_compress = self.deviations.gzips_xml and "gzip" in (request.header(b"accept-encoding") or "")
        return _compress(response) if may_compress and isinstance(response, bytes) else response

    # Buckets

    def _CreateBucket(self, request: Request) -> bytes:
        self.store.buckets.setdefault(request.bucket, Bucket())
        return respond(200)

    def _HeadBucket(self, request: Request) -> bytes:
        self.store.bucket(request.bucket)
        return respond(200)

    def _DeleteBucket(self, request: Request) -> bytes:
        if self.store.bucket(request.bucket).objects:
            raise S3Error(409, "BucketNotEmpty")
        del self.store.buckets[request.bucket]
        return respond(204)

    def _ListObjectsV2(self, request: Request) -> bytes:
        """Return a page; its continuation token is the last key, or folder, of the page before."""
        query = request.query
        most = min(int(query.get("max-keys", PAGE_KEYS)), PAGE_KEYS)
        after = query.get("continuation-token", query.get("start-after", ""))
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        encode = quote if query.get("encoding-type") == "url" else escape
        found: dict[str, str] = {}
        more = False
        for key, stored in self.store.bucket(request.bucket).walk(prefix, after):
            folder = _find_folder(key, prefix, delimiter)
            if folder and (folder in found or folder == after):
                continue
            if len(found) == most:
                more = True
                break
            if folder:
                found[folder] = f"<CommonPrefixes><Prefix>{encode(folder)}</Prefix></CommonPrefixes>"
            else:
                found[key] = _describe_listed(encode(key), stored)
        listed = "".join(found.values())
        listed += f"<KeyCount>{len(found)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            listed += f"<NextContinuationToken>{escape(next(reversed(found), ''))}</NextContinuationToken>"
        if encode is quote:
            listed += "<EncodingType>url</EncodingType>"
        return result("ListBucketResult", listed)

    def _DeleteObjects(self, request: Request) -> bytes:
        bucket = self.store.bucket(request.bucket)
        for element in parse(request.body).iter():
            if element.tag.rpartition("}")[2] == "Key":
                bucket.remove(element.text or "")
        return result("DeleteResult", "")

    # Objects

    def _HeadObject(self, request: Request) -> bytes:
        stored = self.store.read(request.bucket, request.key)
        self._check_if_match(request, stored)
        length = stored.size if self.deviations.head_length else -1
        return respond(200, b"", self._describe(stored), length=length)

    def _GetObject(self, request: Request) -> Response:
        stored = self.store.read(request.bucket, request.key)
        self._check_if_match(request, stored)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header(b"range") or "")
        if asked is None or not stored.size:
            return respond_with(200, memoryview(stored.body), self._describe(stored))
        first, last = _bound_range(asked[1], asked[2], stored.size)
        span = f"content-range: bytes {first}-{last}/{stored.size}\r\n".encode()
        return respond_with(206, memoryview(stored.body)[first : last + 1], self._describe(stored) + span)

    def _PutObject(self, request: Request) -> bytes:
        if "aws-chunked" in (request.header(b"content-encoding") or ""):
            raise S3Error(501, "NotImplemented")
        stored = self._receive(request, self._read_tagging(request))
        self._write(request, stored)
        return respond(200, headers=b'etag: "%s"\r\n' % stored.etag.encode())

    def _CopyObject(self, request: Request) -> bytes:
        source = self._read_source(request)
        if source.size > self.deviations.largest_copy_bytes:
            raise S3Error(400, "EntityTooLarge")
        headers = {name: value for name, value in source.headers.items() if not name.startswith(STORAGE)}
        tags = source.tags
        if request.header(b"x-amz-metadata-directive") == "REPLACE":
            headers = request.describe()
        if request.header(b"x-amz-tagging-directive") == "REPLACE" and self.deviations.tagging_directive:
            tags = self._read_tagging(request)
        headers |= self._read_storage(request)
        tags = tags if "CopyObject" in self.deviations.keeps_tags else NOTHING
        stored = source.copy(headers, tags, self._read_acl(request))
        self._write(request, stored)
        return copy_result("CopyObjectResult", stored)

    def _DeleteObject(self, request: Request) -> bytes:
        self.store.bucket(request.bucket).remove(request.key)
        return respond(204)

    # ACLs

    def _GetObjectAcl(self, request: Request) -> Response:
        stored = self.store.read(request.bucket, request.key)
        if not self.deviations.knows_acl:
            return self._GetObject(request)
        owner = "<ID>owner</ID><DisplayName>owner</DisplayName>"
        grants = [("<ID>owner</ID>", "FULL_CONTROL"), *ACLS.get(stored.acl, ())]
        listed = (
            f"<Grant><Grantee>{grantee}</Grantee><Permission>{permission}</Permission></Grant>"
            for grantee, permission in grants
        )
        content = f"<Owner>{owner}</Owner><AccessControlList>{''.join(listed)}</AccessControlList>"
        return result("AccessControlPolicy", content)

    def _PutObjectAcl(self, request: Request) -> Response:
        if not self.deviations.knows_acl:
            return self._PutObject(request)
        stored = self.store.read(request.bucket, request.key)
        if self.deviations.puts_acl:
            replaced = stored.copy(stored.headers, stored.tags, request.header(b"x-amz-acl") or "private")
            self.store.bucket(request.bucket).put(request.key, replaced)
        return respond(200)

    # Tags

    def _GetObjectTagging(self, request: Request) -> bytes:
        self._refuse_unknown_tags()
        tags = self.store.read(request.bucket, request.key).tags
        words = ((escape(name, RETURNS), escape(value, RETURNS)) for name, value in tags.items())
        found = (f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in words)
        return result("Tagging", f"<TagSet>{''.join(found)}</TagSet>")

    def _PutObjectTagging(self, request: Request) -> bytes:
        self._refuse_unknown_tags()
        words = [
            element.text or ""
            for element in parse(request.body).iter()
            if element.tag.rpartition("}")[2] in {"Key", "Value"}
        ]
        if words or self.deviations.removes_tags:
            self._tag(request, dict(zip(words[::2], words[1::2], strict=True)))
        return respond(200)

    def _DeleteObjectTagging(self, request: Request) -> bytes:
        self._tag(request, {})
        return respond(204)

    def _tag(self, request: Request, tags: Mapping[str, str]) -> None:
        stored = self.store.read(request.bucket, request.key)
        if self.deviations.puts_tags:
            self.store.bucket(request.bucket).put(request.key, stored.copy(stored.headers, tags, stored.acl))

    def _refuse_unknown_tags(self) -> None:
        if not self.deviations.knows_tags:
            raise S3Error(501, "NotImplemented")


def _describe_listed(key: str, stored: StoredObject) -> str:
    """Return an object of a listing; `key`: as the listing writes it."""
    return (
        f"<Contents><Key>{key}</Key><ETag>&quot;{stored.etag}&quot;</ETag><Size>{stored.size}</Size>"
        f"<LastModified>{timestamp(stored.written)}</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
    )


def _find_folder(key: str, prefix: str, delimiter: str) -> str:
    """Return what a key is listed under instead: all up to the delimiter; empty where it has none behind the prefix."""
    end = key.find(delimiter, len(prefix)) if delimiter else -1
    return key[: end + len(delimiter)] if end >= 0 else ""


def _compress(response: bytes) -> bytes:
    """Return a response with its XML compressed, if it is long."""
    head, _, body = response.partition(b"\r\n\r\n")
    if len(body) <= LEAST_GZIPPED_BYTES or XML.strip() not in head:
        return response
    return respond(200, gzip.compress(body), XML + b"content-encoding: gzip\r\n")


def _bound_range(first: str, last: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte, both included. Raises S3Error when the object is shorter."""
    if int(first) >= size:
        raise S3Error(416, "InvalidRange")
    return int(first), min(int(last), size - 1) if last else size - 1
