"""Objects as a third party sees them: written, read and listed without rowferry's client."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from support.s3.buckets import Buckets, S3Access

Listing = dict[str, tuple[object, ...]]
"""ETag, size and time of the last write of each object, by its key."""


@dataclass(frozen=True, slots=True)
class ObjectSide:
    """One bucket, and how tests reach it."""

    access: S3Access
    bucket: str
    endpoint_url: str

    @property
    def client(self) -> Any:
        """Of boto3, for what is rare."""
        return self.access.client

    def put(self, key: str, body: bytes, **properties: Any) -> None:
        """Write an object; `properties` as boto3 names them."""
        if properties:
            self.client.put_object(Bucket=self.bucket, Key=key, Body=body, **properties)
        else:
            self.access.quick.put(self.bucket, key, body)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def head(self, key: str) -> dict[str, Any]:
        return self.client.head_object(Bucket=self.bucket, Key=key)

    def read(self, key: str) -> bytes | None:
        """Return an object's bytes; None when there is no such object."""
        return self.access.quick.read(self.bucket, key)

    def tags(self, key: str) -> dict[str, str]:
        found = self.client.get_object_tagging(Bucket=self.bucket, Key=key).get("TagSet", [])
        return {tag["Key"]: tag["Value"] for tag in found}

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Give an object just these tags."""
        found = {"TagSet": [{"Key": name, "Value": value} for name, value in tags.items()]}
        self.client.put_object_tagging(Bucket=self.bucket, Key=key, Tagging=found)

    def listing(self) -> Listing:
        """Return all that a write would change."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        found = [item for page in pages for item in page.get("Contents", [])]
        return {item["Key"]: (item.get("ETag"), item["Size"], item["LastModified"]) for item in found}

    def open_uploads(self) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        return [item["Key"] for item in self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])]


def legacy_side(buckets: Buckets) -> ObjectSide:
    return ObjectSide(buckets.access, buckets.legacy, buckets.server.endpoint_url)


def production_side(buckets: Buckets) -> ObjectSide:
    return ObjectSide(buckets.access, buckets.production, buckets.server.endpoint_url)


def digest(body: bytes | None) -> str | None:
    """Return what a failing assertion can show of a body."""
    return None if body is None else sha256(body).hexdigest()
