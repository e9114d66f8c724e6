"""The multipart uploads of the fake S3 server."""

import re
import time
from xml.sax.saxutils import escape

from rowferry_lab.servers.fake_s3.http import Request, respond
from rowferry_lab.servers.fake_s3.operations import Operations, copy_result, parse, result, timestamp
from rowferry_lab.servers.fake_s3.store import NOTHING, S3Error, StoredObject, Upload

PAGE_PARTS = 1000
"""Parts in one page of a listing, and the most that may be asked for."""


class UploadOperations(Operations):
    """The operations on uploads."""

    def _CreateMultipartUpload(self, request: Request) -> bytes:
        self.store.bucket(request.bucket)
        tags = self._read_tagging(request)
        headers, acl = request.describe() | self._read_storage(request), self._read_acl(request)
        upload_id = self.store.begin_upload(Upload(request.bucket, request.key, headers, tags, acl))
        return result("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")

    def _UploadPart(self, request: Request) -> bytes:
        part = self._receive(request, NOTHING)
        self._add_part(request, part)
        return respond(200, headers=b'etag: "%s"\r\n' % self._name_part(part).encode())

    def _name_part(self, part: StoredObject) -> str:
        """Return the ETag that is told of a part."""
        return part.etag if self.deviations.md5_of_parts else f"{part.etag}-part"

    def _UploadPartCopy(self, request: Request) -> bytes:
        source = self._read_source(request)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.header(b"x-amz-copy-source-range") or "")
        first, end = (int(asked[1]), min(int(asked[2]) + 1, source.size)) if asked else (0, source.size)
        body = source.body[first:end] if self.store.keeps_parts else b""
        part = StoredObject(body, source.md5_of(first, end), end - first, NOTHING, NOTHING, time.time())
        self._add_part(request, part)
        return copy_result("CopyPartResult", part)

    def _add_part(self, request: Request, part: StoredObject) -> None:
        self.store.upload(request.query["uploadId"]).parts[int(request.query["partNumber"])] = part

    def _CompleteMultipartUpload(self, request: Request) -> bytes:
        upload_id = request.query["uploadId"]
        upload = self.store.upload(upload_id)
        words = [(element.tag.rpartition("}")[2], element.text or "") for element in parse(request.body).iter()]
        numbers = [int(text) for name, text in words if name == "PartNumber"]
        etags = [text.strip('"') for name, text in words if name == "ETag"]
        stored = upload.assemble(numbers, self.store.expect(upload.key))
        if etags and etags != [self._name_part(upload.parts[number]) for number in numbers]:
            raise S3Error(400, "InvalidPart")
        self._write(request, stored)
        del self.store.uploads[upload_id]
        etag = f"&quot;{stored.etag}&quot;" if self.deviations.completion_etag else ""
        return result("CompleteMultipartUploadResult", f"<ETag>{etag}</ETag>")

    def _AbortMultipartUpload(self, request: Request) -> bytes:
        self.store.upload(request.query["uploadId"])
        del self.store.uploads[request.query["uploadId"]]
        return respond(204)

    def _ListParts(self, request: Request) -> bytes:
        """Return a page of the parts of an upload, in the order of their numbers."""
        if not self.deviations.lists_parts:
            raise S3Error(501, "NotImplemented")
        parts = self.store.upload(request.query["uploadId"]).parts
        most = min(int(request.query.get("max-parts", PAGE_PARTS)), PAGE_PARTS)
        after = int(request.query.get("part-number-marker") or 0)
        numbers = sorted(number for number in parts if number > after)
        more, numbers = len(numbers) > most, numbers[:most]
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><LastModified>{timestamp(parts[number].written)}</LastModified>"
            f"<ETag>&quot;{self._name_part(parts[number])}&quot;</ETag><Size>{parts[number].size}</Size></Part>"
            for number in numbers
        )
        marker = f"<NextPartNumberMarker>{numbers[-1]}</NextPartNumberMarker>" if more else ""
        return result("ListPartsResult", f"{listed}<IsTruncated>{str(more).lower()}</IsTruncated>{marker}")

    def _ListMultipartUploads(self, request: Request) -> bytes:
        """Return all uploads in one page."""
        self.store.bucket(request.bucket)
        now = timestamp(time.time())
        return result(
            "ListMultipartUploadsResult",
            "<IsTruncated>false</IsTruncated>"
            + "".join(
                f"<Upload><Key>{escape(upload.key)}</Key><UploadId>{upload_id}</UploadId><Initiated>{now}</Initiated></Upload>"
                for upload_id, upload in self.store.uploads.items()
                if upload.bucket == request.bucket and upload.key.startswith(request.query.get("prefix", ""))
            ),
        )
