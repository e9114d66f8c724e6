"""What a server does by itself: asked with plain requests of boto3, never through rowferry."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.keys import list_keys
from conformance.plain import PlainRequests, make_buckets
from conformance.properties import PROPERTIES, TAGS, WITHOUT_UNDERSCORE, compare_properties, encode_tags
from rowferry_lab.servers.s3_servers import S3Server
from support.s3.buckets import S3Access, connect_s3

WAYS = ("PutObject", "CopyObject", "CreateMultipartUpload")
LEAST_BYTES = 5 * 1024 * 1024
"""Garage copies no parts of smaller objects."""


@dataclass(slots=True)
class Facts:
    """What one server was seen to do."""

    name: str
    kept_keys: frozenset[str] = frozenset()
    copied_keys: frozenset[str] = frozenset()
    """Those of them that CopyObject takes as well."""
    checks_secret: bool = False
    has_tags: bool = False
    copies_objects: bool = False
    copies_parts: bool = False
    properties: Mapping[str, Any] = field(default_factory=lambda: PROPERTIES)
    """Those that a write may have."""
    dropped: dict[str, list[str]] = field(default_factory=dict)
    """Properties that an object has lost, or may not have, by the way it was written."""
    behaviour: dict[str, str] = field(default_factory=dict)
    """What is told on the page, by what was asked."""


class Asker(PlainRequests):
    """The questions to a server."""

    def ask_all(self) -> Facts:
        facts = Facts(self.server.name)
        facts.kept_keys = frozenset(self.find_kept_keys())
        facts.copied_keys = frozenset(key for key in facts.kept_keys if self.copies_key(key))
        facts.checks_secret = self.refuses(lambda: connect_s3(self.server, secret_key="wrong").list_buckets()) != ""
        facts.properties = self.choose_properties()
        self.put("tagged", b"tagged")
        facts.has_tags = self.keeps_tags("tagged", lambda: self.tag("tagged")) and self.read("tagged") == b"tagged"
        facts.copies_objects = not self.refuses(lambda: self.write("CopyObject", "copied"))
        self.put("large source", bytes(LEAST_BYTES))
        facts.copies_parts = not self.refuses(lambda: self.write_parts("copied in parts", copy=True))
        ways = [way for way in WAYS if way != "CopyObject" or facts.copies_objects]
        facts.dropped = {way: self.find_dropped(way, facts.properties) for way in ways}
        facts.behaviour = dict(self.find_behaviour(facts))
        return facts

    def find_behaviour(self, facts: Facts) -> Iterator[tuple[str, str]]:
        """Yield what each operation makes of what it is told."""
        for operation in ("PutObject", "CopyObject", "CompleteMultipartUpload"):
            yield f"If-None-Match of {operation}", self.ask_condition(operation)
        for operation in ("CopyObject", "UploadPartCopy"):
            yield f"x-amz-copy-source-if-match of {operation}", self.ask_source_condition(operation)
        yield "ETag in the response to CompleteMultipartUpload", self.ask_completion()
        for way in WAYS:
            yield f"tags given to {way}", self.ask_tags(way) if facts.has_tags else "no tags"
        whole = self.read("tagged") == b"tagged"
        yield "PutObjectTagging", "kept" if facts.has_tags else "refused" if whole else "overwrites the object"
        yield "x-amz-tagging-count in HEAD", self.ask_announcement() if facts.has_tags else "no tags"
        yield "a wrong secret", "refused" if facts.checks_secret else "accepted"

    # Keys and properties

    def find_kept_keys(self) -> Iterator[str]:
        """Yield the strange keys under which an object is found and listed as it was put."""
        put = [key for key in list_keys() if not self.refuses(lambda key=key: self.put(key, key.encode()))]
        for key in put:
            if self.lists(key) and self.holds(key, key.encode()):
                yield key

    def holds(self, key: str, body: bytes) -> bool:
        """Return whether an object is found by this key and has these bytes."""
        found: list[bytes] = []
        return not self.refuses(lambda: found.append(self.read(key))) and found == [body]

    def copies_key(self, key: str) -> bool:
        """Return whether the server itself copies an object from this key to this key."""
        source = {"Bucket": self.a, "Key": key}
        return not self.refuses(lambda: self.client.copy_object(Bucket=self.b, Key=key, CopySource=source))

    def lists(self, key: str) -> bool:
        """Return whether a listing has the key."""
        found: list[dict[str, Any]] = []
        listing = partial(self.client.list_objects_v2, Bucket=self.a, Prefix=key)
        self.refuses(lambda: found.extend(listing().get("Contents", [])))
        return any(item["Key"] == key for item in found)

    def choose_properties(self) -> Mapping[str, Any]:
        """Return the properties that a write may have, and leave an object that has them."""
        source = {"Bucket": self.a, "Key": "source", "Body": b"source"}
        if not self.refuses(lambda: self.client.put_object(**source, **PROPERTIES)):
            return PROPERTIES
        self.client.put_object(**source, **WITHOUT_UNDERSCORE)
        return WITHOUT_UNDERSCORE

    def find_dropped(self, way: str, properties: Mapping[str, Any]) -> list[str]:
        """Return the properties that an object written in this way has not got."""
        self.write(way, f"described by {way}", **({} if way == "CopyObject" else properties))
        bucket = self.b
        return list(compare_properties(self.client.head_object(Bucket=bucket, Key=f"described by {way}")))

    # Tags

    def tag(self, key: str) -> None:
        tags = {"TagSet": [{"Key": name, "Value": value} for name, value in TAGS.items()]}
        self.client.put_object_tagging(Bucket=self.a, Key=key, Tagging=tags)

    def keeps_tags(self, key: str, put: Callable[[], object], bucket: str | None = None) -> bool:
        found: dict[str, str] = {}

        def read() -> None:
            tags = self.client.get_object_tagging(Bucket=bucket or self.a, Key=key)["TagSet"]
            found.update({tag["Key"]: tag["Value"] for tag in tags})

        return not self.refuses(put) and not self.refuses(read) and found == TAGS

    def ask_tags(self, way: str) -> str:
        key, told = f"tagged by {way}", {} if way == "CopyObject" else {"Tagging": encode_tags()}
        self.tag("source")
        refusal = self.refuses(lambda: self.write(way, key, **told))
        if refusal:
            return f"refused ({refusal})"
        return "kept" if self.keeps_tags(key, lambda: None, self.b) else "dropped"

    def ask_announcement(self) -> str:
        told = self.client.head_object(Bucket=self.a, Key="tagged")["ResponseMetadata"]["HTTPHeaders"]
        return "sent" if "x-amz-tagging-count" in told else "not sent"

    # Conditions

    def ask_condition(self, operation: str) -> str:
        """Write twice under `If-None-Match: *` and say what became of it."""
        key = f"conditional {operation}"
        write = self.write if operation != "CompleteMultipartUpload" else self.write_part_conditionally
        first = self.refuses(lambda: write(operation, key, IfNoneMatch="*"))
        if first:
            return f"refused ({first})"
        return judge_condition(self.refuses(lambda: write(operation, key, IfNoneMatch="*")))

    def write_part_conditionally(self, _operation: str, key: str, **condition: Any) -> None:
        self.write_parts(key, copy=False, complete=condition)

    def ask_source_condition(self, operation: str) -> str:
        def write(**condition: str) -> None:
            if operation == "CopyObject":
                self.write("CopyObject", f"pinned {operation}", **condition)
            else:
                self.write_parts(f"pinned {operation}", copy=True, part=condition)

        if unpinned := self.refuses(write):
            return f"no such operation ({unpinned})"
        return judge_condition(self.refuses(lambda: write(CopySourceIfMatch='"0123456789abcdef0123456789abcdef"')))

    def ask_completion(self) -> str:
        return "named" if self.write_parts("completed", copy=False).get("ETag", "").strip('"') else "empty"


def ask_server(server: S3Server) -> Facts:
    """Return what a running server does."""
    with closing(S3Access(server)) as access:
        return Asker(make_buckets(access)).ask_all()


def judge_condition(refusal: str) -> str:
    """Return what a server makes of a condition that does not hold, by its refusal of the request."""
    if not refusal:
        return "ignored"
    return "honoured" if refusal.startswith("412") else f"refused ({refusal})"
