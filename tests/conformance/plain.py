"""Plain requests of boto3 to a server that is looked at, never through rowferry."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from support.s3.buckets import Buckets, S3Access


class PlainRequests:
    """Requests to two scratch buckets of a server, one to read and one to write."""

    def __init__(self, buckets: Buckets) -> None:
        self.client, self.a, self.b = buckets.client, buckets.legacy, buckets.production
        self.server = buckets.server

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=self.a, Key=key, Body=body)

    def read(self, key: str) -> bytes:
        with self.client.get_object(Bucket=self.a, Key=key)["Body"] as body:
            return body.read()

    def write(self, way: str, key: str, **more: Any) -> None:
        """Write an object to the second bucket in one of the ways."""
        if way == "PutObject":
            self.client.put_object(Bucket=self.b, Key=key, Body=b"source", **more)
        elif way == "CopyObject":
            self.client.copy_object(Bucket=self.b, Key=key, CopySource={"Bucket": self.a, "Key": "source"}, **more)
        else:
            self.write_parts(key, copy=False, create=more)

    def write_parts(
        self,
        key: str,
        *,
        copy: bool,
        create: Mapping[str, Any] | None = None,
        part: Mapping[str, Any] | None = None,
        complete: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write an object of one part and return the answer that completed it."""
        named = {"Bucket": self.b, "Key": key}
        named["UploadId"] = self.client.create_multipart_upload(**named, **(create or {}))["UploadId"]
        if copy:
            source = {"CopySource": {"Bucket": self.a, "Key": "large source"}, **(part or {})}
            etag = self.client.upload_part_copy(**named, PartNumber=1, **source)["CopyPartResult"]["ETag"]
        else:
            etag = self.client.upload_part(**named, PartNumber=1, Body=b"source")["ETag"]
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        return self.client.complete_multipart_upload(**named, MultipartUpload=parts, **(complete or {}))

    @staticmethod
    def refuses(request: Callable[[], object]) -> str:
        """Return the status and code by which a server refuses a request; empty where it does not."""
        try:
            request()
        except ClientError as error:
            told = error.response
            return f"{told['ResponseMetadata']['HTTPStatusCode']} {told.get('Error', {}).get('Code', '')}"
        except (BotoCoreError, KeyError, ValueError) as error:
            return type(error).__name__
        return ""


def make_buckets(access: S3Access) -> Buckets:
    """Make two buckets, which go with their server: not each of them can remove what it has taken."""
    unique = uuid4().hex[:12]
    buckets = Buckets(access.server, access, f"legacy-{unique}", f"production-{unique}")
    for name in (buckets.legacy, buckets.production):
        access.client.create_bucket(Bucket=name)
    return buckets
