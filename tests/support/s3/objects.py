"""Objects as a third party sees them, by boto3: written, read and listed without rowferry."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from support.s3.buckets import Buckets

Listing = dict[str, tuple[object, ...]]
"""ETag, size and time of the last write of each object, by its key."""


@dataclass(frozen=True, slots=True)
class ObjectSide:
    """One bucket, and a client for it."""

    client: Any
    bucket: str
    endpoint_url: str

    def put(self, key: str, body: bytes, **properties: Any) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body, **properties)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def head(self, key: str) -> dict[str, Any]:
        return self.client.head_object(Bucket=self.bucket, Key=key)

    def read(self, key: str) -> bytes | None:
        """Return an object's bytes; None when there is no such object."""
        try:
            with self.client.get_object(Bucket=self.bucket, Key=key)["Body"] as body:
                return body.read()
        except self.client.exceptions.NoSuchKey:
            return None

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
        return {item["Key"]: (item["ETag"], item["Size"], item["LastModified"]) for item in found}

    def open_uploads(self) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        return [item["Key"] for item in self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])]


def legacy_side(buckets: Buckets) -> ObjectSide:
    return ObjectSide(buckets.client, buckets.legacy, buckets.server.endpoint_url)


def production_side(buckets: Buckets) -> ObjectSide:
    return ObjectSide(buckets.client, buckets.production, buckets.server.endpoint_url)


def digest(body: bytes | None) -> str | None:
    """Return what a failing assertion can show of a body."""
    return None if body is None else sha256(body).hexdigest()
