"""What a fake S3 server of tests does otherwise than Amazon S3, and what the lab's fake does not know: ACLs, lists of
uploads and parts, the change of tags."""

import gzip
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from rowferry_lab.servers.fake_s3.api import FakeApi, check_match, find_texts, result, timestamp
from rowferry_lab.servers.fake_s3.http import OPERATIONS, Request, Response, refuse
from rowferry_lab.servers.fake_s3.store import S3Error, Store, StoredObject

WRITES = ("PutObject", "CopyObject", "CompleteMultipartUpload")
MADE_OF_REQUESTS = frozenset({"PutObject", "CopyObject", "CreateMultipartUpload"})
PAGE_PARTS = 1000
"""Parts in one page of a listing, and the most that may be asked for."""
LEAST_GZIPPED_BYTES = 1000
ENCRYPTION = b"x-amz-server-side-encryption"
KEEPING = ("x-amz-storage-class", ENCRYPTION.decode())
"""How the headers begin that say how an object is kept: a copy never has them from its source."""
_GROUPS = "<URI>http://acs.amazonaws.com/groups/global/"
ACLS = {
    "public-read": [(f"{_GROUPS}AllUsers</URI>", "READ")],
    "public-read-write": [(f"{_GROUPS}AllUsers</URI>", "READ"), (f"{_GROUPS}AllUsers</URI>", "WRITE")],
    "authenticated-read": [(f"{_GROUPS}AuthenticatedUsers</URI>", "READ")],
    "to-an-account": [("<ID>another</ID>", "READ")],
}
"""What a canned ACL grants, its owner aside; the last is not one of S3's."""
OPERATIONS.update(
    {
        ("GET", "uploads", False): "ListMultipartUploads",
        ("GET", "uploadId", True): "ListParts",
        ("PUT", "tagging", True): "PutObjectTagging",
        ("DELETE", "tagging", True): "DeleteObjectTagging",
        ("GET", "acl", True): "GetObjectAcl",
        ("PUT", "acl", True): "PutObjectAcl",
    }
)
LOGIN_PAGE = b"<html><body>please log in: <a href='ETag'>ETag</a></body></html>"


@dataclass(frozen=True, slots=True)
class Deviations:
    """The defaults are Amazon's own behaviour."""

    if_none_match: frozenset[str] = frozenset(WRITES)
    """The operations that honour If-None-Match."""
    looks_early: bool = False
    """Whether If-None-Match is held against what stands there before the body is read, and not after it."""
    if_match: frozenset[str] = frozenset({"PutObject", "CompleteMultipartUpload"})
    """The operations that honour If-Match when they write."""
    read_if_match: bool = True
    """Whether a GET or HEAD honours If-Match."""
    source_if_match: bool = True
    """Whether x-amz-copy-source-if-match is honoured."""
    tagging_count: bool = True
    """Whether HEAD and GET return x-amz-tagging-count."""
    head_tagging_count: bool = True
    """Whether HEAD returns it."""
    keeps_tags: frozenset[str] = MADE_OF_REQUESTS
    """The operations that keep the tags of the object."""
    tagging_directive: bool = True
    """Whether CopyObject heeds x-amz-tagging-directive; without, a copy has the tags of its source."""
    removes_tags: bool = True
    """Whether PutObjectTagging takes tags away."""
    knows_tags: bool = True
    """Whether GetObjectTagging and PutObjectTagging are known."""
    puts_tags: bool = True
    """Whether PutObjectTagging has an effect."""
    keeps_acl: frozenset[str] = MADE_OF_REQUESTS
    """The operations that keep the ACL given with them."""
    puts_acl: bool = True
    """Whether PutObjectAcl has an effect."""
    knows_acl: bool = True
    """Whether GetObjectAcl and PutObjectAcl are known; without, they are GetObject and PutObject."""
    encrypts: bool = True
    """Whether x-amz-server-side-encryption has an effect."""
    completion_etag: bool = True
    """Whether the result of CompleteMultipartUpload has an ETag."""
    lists_parts: bool = True
    """Whether ListParts is known."""
    keeps_cut_parts: bool = False
    """Whether a part whose connection ends in its body is kept, at its full size, with zeros in place of the rest."""
    largest_copy_bytes: int = 5 * 1024**3
    """CopyObject refuses a larger object, as EntityTooLarge."""
    checks_md5: bool = True
    """Whether a body with another MD5 than Content-MD5 says is refused."""
    md5_of_parts: bool = True
    """Whether the ETag of a part is its MD5."""
    head_length: bool = True
    """Whether the response to HeadObject has a Content-Length."""
    gzips_xml: bool = False
    """Whether XML of more than 1,000 bytes comes compressed where that is asked for, as MinIO sends it."""
    login_page_for: str | None = None
    """The operation that does nothing and returns 200 with a web page."""


class ObjectWithAcl(StoredObject, frozen=True, dict=True):
    """An object whose writer gave it an ACL."""

    acl: str = "private"


class DeviantApi(FakeApi):
    """The operations of the fake with these deviations: requests are changed before it sees them, or its responses."""

    def __init__(self, store: Store, deviations: Deviations) -> None:
        super().__init__(store)
        self.deviations = deviations
        self._upload_acls: dict[str, str] = {}

    def answer(self, request: Request) -> Response:
        operation, told = request.operation, self.deviations
        if operation == told.login_page_for:
            page = b"" if request.method == "HEAD" else LOGIN_PAGE
            return Response(200, page, b"content-type: text/html\r\n", len(LOGIN_PAGE))
        if (operation in {"GetObjectTagging", "PutObjectTagging"} and not told.knows_tags) or (
            operation == "ListParts" and not told.lists_parts
        ):
            return refuse(request, 501, "NotImplemented")
        heeded, ignored = copy(request), self._list_ignored(request)
        heeded.headers = {name: value for name, value in request.headers.items() if name not in ignored}
        if operation.endswith("Acl") and not told.knows_acl:
            heeded.operation = operation.removesuffix("Acl")
        if operation == "CompleteMultipartUpload":
            heeded.body = request.body.replace(b"-part", b"")
        return self._deviate(request, super().answer(heeded))

    def refuse_early(self, request: Request) -> Response | None:
        """Return the response to a write that is refused before its body is read."""
        if not self.deviations.looks_early:
            return None
        honours = request.operation in self.deviations.if_none_match
        forbids = honours and request.header(b"if-none-match") == "*"
        stands = forbids and self.store.bucket(request.bucket).find(request.key)
        return refuse(request, 412, "PreconditionFailed") if stands else None

    def _list_ignored(self, request: Request) -> list[bytes]:
        """Return the headers of a request that the server does not heed."""
        operation, told = request.operation, self.deviations
        heeds_match = told.read_if_match if request.method in {"GET", "HEAD"} else operation in told.if_match
        heeded = {
            b"if-none-match": operation in told.if_none_match and not told.looks_early,
            b"if-match": heeds_match,
            b"x-amz-copy-source-if-match": told.source_if_match,
            b"x-amz-tagging": operation in told.keeps_tags,
            b"x-amz-tagging-directive": told.tagging_directive,
            b"x-amz-acl": operation in told.keeps_acl or operation == "PutObjectAcl",
            ENCRYPTION: told.encrypts,
            b"content-md5": told.checks_md5,
        }
        return [name for name, is_heeded in heeded.items() if not is_heeded]

    def _deviate(self, request: Request, response: Response) -> Response:
        """Return what the server says in place of the response of Amazon's."""
        operation, told = request.operation, self.deviations
        status, body, headers, length = response
        if not told.tagging_count or (operation == "HeadObject" and not told.head_tagging_count):
            headers = re.sub(rb"x-amz-tagging-count: \d+\r\n", b"", headers)
        if operation == "HeadObject" and not told.head_length:
            length = -1
        if operation == "CompleteMultipartUpload" and not told.completion_etag:
            body = re.sub(rb"<ETag>.*</ETag>", b"<ETag></ETag>", bytes(body))
        if operation in {"UploadPart", "ListParts"} and not told.md5_of_parts:
            headers = re.sub(rb'"(.{32})"', rb'"\1-part"', headers)
            body = re.sub(rb"&quot;(.{32})&quot;", rb"&quot;\1-part&quot;", bytes(body))
        may_compress = told.gzips_xml and "gzip" in (request.header(b"accept-encoding") or "")
        if may_compress and b"/xml" in headers and len(body) > LEAST_GZIPPED_BYTES:
            body, headers = gzip.compress(body), headers + b"content-encoding: gzip\r\n"
        return Response(status, body, headers, length)

    # Properties of objects

    def receive(self, request: Request, headers: Mapping[str, str], tags: Mapping[str, str]) -> StoredObject:
        stored = super().receive(request, headers, tags)
        if request.header(b"content-md5") not in {None, b64encode(bytes.fromhex(stored.etag)).decode()}:
            raise S3Error(400, "BadDigest")
        return stored

    def write(self, request: Request, stored: StoredObject) -> None:
        if b"if-match" in request.headers:
            check_match(request, b"if-match", self.store.read(request.bucket, request.key))
        headers, tags = stored.headers, stored.tags
        if request.operation == "CopyObject":
            headers = {name: value for name, value in headers.items() if not name.startswith(KEEPING)}
            tags = tags if "CopyObject" in self.deviations.keeps_tags else {}
        acl = request.header(b"x-amz-acl") or self._upload_acls.get(request.query.get("uploadId", ""), "private")
        super().write(request, changed(stored, headers={**headers, **list_kept(request)}, tags=tags, acl=acl))

    def _CopyObject(self, request: Request) -> Response:
        if self.read_source(request).size > self.deviations.largest_copy_bytes:
            raise S3Error(400, "EntityTooLarge")
        return super()._CopyObject(request)

    def _CreateMultipartUpload(self, request: Request) -> Response:
        response = super()._CreateMultipartUpload(request)
        (upload_id,) = find_texts(bytes(response.body), "UploadId")
        upload = self.store.upload(upload_id)
        upload.headers = {**upload.headers, **list_kept(request)}
        self._upload_acls[upload_id] = request.header(b"x-amz-acl") or "private"
        return response

    def _PutObjectAcl(self, request: Request) -> Response:
        if self.deviations.puts_acl:
            self._replace(request, acl=request.header(b"x-amz-acl") or "private")
        return Response(200)

    def _PutObjectTagging(self, request: Request) -> Response:
        tags = dict(zip(find_texts(request.body, "Key"), find_texts(request.body, "Value"), strict=True))
        if self.deviations.puts_tags and (tags or self.deviations.removes_tags):
            self._replace(request, tags=tags)
        return Response(200)

    def _DeleteObjectTagging(self, request: Request) -> Response:
        self._replace(request, tags={})
        return Response(204)

    def _replace(self, request: Request, **changes: Any) -> None:
        bucket = self.store.bucket(request.bucket)
        stored = self.store.read(request.bucket, request.key)
        bucket.put(request.key, changed(stored, written=time.time(), **changes))

    def _GetObjectAcl(self, request: Request) -> Response:
        stored = self.store.read(request.bucket, request.key)
        owner = "<ID>owner</ID><DisplayName>owner</DisplayName>"
        acl = stored.acl if isinstance(stored, ObjectWithAcl) else "private"
        grants = [("<ID>owner</ID>", "FULL_CONTROL"), *ACLS.get(acl, ())]
        listed = (
            f"<Grant><Grantee>{grantee}</Grantee><Permission>{permission}</Permission></Grant>"
            for grantee, permission in grants
        )
        content = f"<Owner>{owner}</Owner><AccessControlList>{''.join(listed)}</AccessControlList>"
        return result("AccessControlPolicy", content)

    # Uploads

    def _ListParts(self, request: Request) -> Response:
        """Return a page of the parts of an upload, in the order of their numbers."""
        parts = self.store.upload(request.query["uploadId"]).parts
        most = min(int(request.query.get("max-parts", PAGE_PARTS)), PAGE_PARTS)
        after = int(request.query.get("part-number-marker") or 0)
        numbers = sorted(number for number in parts if number > after)
        more, numbers = len(numbers) > most, numbers[:most]
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><LastModified>{timestamp(parts[number].written)}</LastModified>"
            f"<ETag>&quot;{parts[number].etag}&quot;</ETag><Size>{parts[number].size}</Size></Part>"
            for number in numbers
        )
        marker = f"<NextPartNumberMarker>{numbers[-1]}</NextPartNumberMarker>" if more else ""
        return result("ListPartsResult", f"{listed}<IsTruncated>{str(more).lower()}</IsTruncated>{marker}")

    def _ListMultipartUploads(self, request: Request) -> Response:
        """Return all uploads in one page."""
        self.store.bucket(request.bucket)
        now, prefix = timestamp(time.time()), request.query.get("prefix", "")
        listed = "".join(
            f"<Upload><Key>{escape(upload.key)}</Key><UploadId>{upload_id}</UploadId><Initiated>{now}</Initiated></Upload>"
            for upload_id, upload in self.store.uploads.items()
            if upload.bucket == request.bucket and upload.key.startswith(prefix)
        )
        return result("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{listed}")


def changed(made: StoredObject, **changes: Any) -> ObjectWithAcl:
    """Return an object that differs in these fields."""
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return ObjectWithAcl(**{**fields, **changes})


def list_kept(request: Request) -> dict[str, str]:
    """Return the headers that say how an object is kept."""
    named = {name.decode(): value.decode() for name, value in request.headers.items()}
    return {name: value for name, value in named.items() if name.startswith(KEEPING)}
