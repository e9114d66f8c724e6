"""`[legacy]` and `[production]`: the two buckets."""

import re
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from rowferry.errors import PlanError
from rowferry.plan.properties import Acl, Encryption, TagRule, find_fault
from rowferry.plan.table import Table

SideName = Literal["legacy", "production"]
Addressing = Literal["auto", "path", "virtual"]
# fmt: off
ProviderName = Literal[
    "aws", "spaces", "r2", "b2", "wasabi", "gcs", "hetzner", "scaleway", "ovh", "linode", "oracle", "ibm", "oss", "cos",
    "tigris", "storj", "supabase", "garage", "ceph", "minio", "seaweedfs",
]
# fmt: on
"""Those of rowferry/s3/providers.toml."""
AboveZero = Annotated[float, Meta(gt=0)]

DEFAULT_REGION = "us-east-1"
"""Where nothing names another region."""
_BUCKET = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
"""Bucket names that servers take; AWS takes fewer now, but had longer ones once."""


class Side(Table, frozen=True):
    """A bucket, where it is served, and which AWS profile has the credentials for it."""

    name: ClassVar[SideName]
    bucket: str
    endpoint_url: str | None = None
    """None: AWS itself, in `region`."""
    region: str | None = None
    """None: as the endpoint's host or the provider has it, else DEFAULT_REGION."""
    profile: str | None = None
    addressing: Addressing = "auto"
    """Whether a URL names the bucket in its path or its host; auto: the path if there is an `endpoint_url`."""
    max_requests_per_second: AboveZero | None = None
    """Requests to this side per second, by all workers together; None: no limit."""
    provider: ProviderName | None = None
    """Whose server it is; None: as the endpoint's host tells."""
    requester_pays: bool = False
    """Whether each request says that the requester pays for it, as some buckets demand."""

    def __post_init__(self) -> None:
        if not self.bucket:
            raise PlanError(f"[{self.name}] has an empty `bucket`")
        if not _BUCKET.fullmatch(self.bucket):
            correction = _correct_bucket(self.bucket)
            raise PlanError(f"`bucket` of [{self.name}] must be the bucket's name alone, {correction}")
        if self.region is not None and not self.region:
            remedy = f'leave it out, or write the server\'s own, such as "{DEFAULT_REGION}"'
            raise PlanError(f"[{self.name}] has an empty `region`: {remedy}")
        if self.provider not in {None, "aws"} and self.endpoint_url is None:
            raise PlanError(f"[{self.name}] names a provider and no server: write its `endpoint_url` as well")

    @property
    def region_or_default(self) -> str:
        """The plan's region, else DEFAULT_REGION, which is right on AWS."""
        return self.region or DEFAULT_REGION

    def may_share_region(self, other: "Side") -> bool:
        """Whether another side of the same server is in this region, as far as the plan says."""
        if self.server is not None and None in {self.region, other.region}:
            return True  # what is left out is the same for both, and the server refuses another
        return self.region_or_default == other.region_or_default

    @property
    def server(self) -> str | None:
        """The endpoint, normalised: lower case, no default port, no slash at the end; None: AWS."""
        if self.endpoint_url is None:
            return None
        scheme, _, rest = self.endpoint_url.partition("://")
        authority, _, path = rest.partition("/")
        scheme, authority = scheme.lower(), authority.lower()
        authority = authority.removesuffix({"http": ":80", "https": ":443"}.get(scheme, ":"))
        return f"{scheme}://{authority}/{path.strip('/')}".rstrip("/")

    @property
    def has_tls(self) -> bool:
        """Whether the connections to it are encrypted."""
        return self.server is None or self.server.startswith("https://")


class LegacySide(Side, frozen=True):
    """`[legacy]`: where the objects are. It is only read."""

    name: ClassVar[SideName] = "legacy"
    immutable: bool = False
    """No object is ever overwritten in place, so none has to be looked at again once it was copied."""
    rewritten: bool = False
    """Objects are overwritten all the time, so each is looked at again right before its row moves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.immutable and self.rewritten:
            raise PlanError("immutable and rewritten exclude each other: leave one of them out")


class ProductionSide(Side, frozen=True):
    """`[production]`: where the objects go. It is written."""

    name: ClassVar[SideName] = "production"
    acl: Acl | None = None
    """The ACL of each object: a canned one, or that of the legacy object; None: objects get what the bucket gives."""
    cache_control: str | None = None
    """Cache-Control of each object, in the place of the legacy object's."""
    content_disposition: str | None = None
    """Content-Disposition of each object, in the place of the legacy object's."""
    storage_class: str | None = None
    """The storage class of each object; None: as the way of copying has it."""
    tags: TagRule = "copy"
    """The tags of each object: those of the legacy object, none, or these."""
    encryption: Encryption | None = None
    """The encryption of each object at rest; None: what the bucket does by itself."""
    kms_key_id: str | None = None
    """The key of aws:kms and aws:kms:dsse; None: the account's own."""
    public_url: str | None = None
    """Where the public reads objects: the URL to which keys are appended. `rowferry check` fetches one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if fault := find_fault(self, PROPERTIES):
            raise PlanError(fault)


PROPERTIES = ProductionSide.__struct_fields__[len(Side.__struct_fields__) :]
"""The fields that say what production objects shall be: those that `[legacy]` does not have."""


def _correct_bucket(bucket: str) -> str:
    """Return what is wrong with a bucket's name, which goes into the URL as it is, and what to write instead."""
    if bucket.startswith("arn:"):
        return f"not {bucket!r}: access points and other ARNs are not supported"
    name, _, folder = bucket.removeprefix("s3://").strip("/").partition("/")
    if not _BUCKET.fullmatch(name) or ".." in folder:
        return f"not {bucket!r}: letters, digits, `.`, `_` and `-`, at most 255, and no `..`"
    if folder:
        return f"not {bucket!r}: write {name!r}, and put {folder + '/'!r} into `from` or `to` of [[entries]]"
    return f"not {bucket!r}: write {name!r}"
