"""The plan, each field once: `rowferry.toml`, the database's jsonb and the code all have this shape.

A new field is an edit here (and in docs/plan.md): its type is read, checked and explained by `plan_file`. What a type
cannot say, `__post_init__` checks, so that no plan is ever held that cannot be meant.
"""

import re
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field

from rowferry.errors import PlanError
from rowferry.sql_condition import find_fault

SideName = Literal["legacy", "production"]
Transfer = Literal["auto", "server", "stream"]
Addressing = Literal["auto", "path", "virtual"]
OnConflict = Literal["fail", "keep", "overwrite"]
"""What to do where a different production object exists: report it, trust it, or replace it."""

AboveZero = Annotated[float, Meta(gt=0)]
PartSize = Annotated[int, Meta(ge=5 * 1024**2, le=5 * 1024**3)]
"""Bytes of a part. Source: Amazon S3 User Guide, "Multipart upload limits"."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_BUCKET = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
"""Bucket names that servers take; AWS takes fewer now, but had longer ones once."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of the plan file."""


class MigrationSettings(_Table, frozen=True):
    """`[migration]`."""

    name: str
    transfer: Transfer = "auto"
    max_attempts: Annotated[int, Meta(ge=1)] = 5
    simulated: bool = False
    multipart_threshold_bytes: PartSize | None = None
    """Larger objects are copied in parts of at most this size; None: only objects too large for one request."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise PlanError("the migration's `name` must be 1 to 63 letters, digits, `_`, `.` or `-`")


class Side(_Table, frozen=True):
    """A bucket, where it is served, and which AWS profile has the credentials for it."""

    name: ClassVar[SideName]
    bucket: str
    endpoint_url: str | None = None
    """None: AWS itself, in `region`."""
    region: str = "us-east-1"
    profile: str | None = None
    addressing: Addressing = "auto"
    """Whether a URL names the bucket in its path or its host; auto: the path if there is an `endpoint_url`."""
    max_requests_per_second: AboveZero | None = None
    """Requests to this side per second, by all workers together; None: no limit."""

    def __post_init__(self) -> None:
        if not self.bucket:
            raise PlanError(f"[{self.name}] has an empty `bucket`")
        if not _BUCKET.fullmatch(self.bucket):
            correction = _correct_bucket(self.bucket)
            raise PlanError(f"`bucket` of [{self.name}] must be the bucket's name alone, {correction}")
        if not self.region:
            remedy = 'leave it out, or write the server\'s own, such as "us-east-1"'
            raise PlanError(f"[{self.name}] has an empty `region`: {remedy}")

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


class LegacySide(Side, frozen=True):
    """`[legacy]`: where the objects are. It is only read."""

    name: ClassVar[SideName] = "legacy"


class ProductionSide(Side, frozen=True):
    """`[production]`: where the objects go. It is written."""

    name: ClassVar[SideName] = "production"


class Entries(_Table, frozen=True):
    """`[[entries]]`: one key column of one table. Its rows are the entries of the migration."""

    table: str
    """`schema.table` or `table`."""
    id: str
    key: str
    legacy_prefix: str = field(name="from")
    """Legacy keys begin with this."""
    production_prefix: str = field(name="to")
    """Production keys begin with this instead."""
    where: str | None = None
    """An SQL condition over the table's columns; a row that does not meet it is not an entry."""

    def __post_init__(self) -> None:
        if not (self.table and self.id and self.key):
            raise PlanError("an [[entries]] has an empty `table`, `id` or `key`")
        if self.legacy_prefix == self.production_prefix:
            raise PlanError(
                f"`from` and `to` of {self.label} are the same, so a row could not tell whether its object has moved: "
                "give `to` another prefix"
            )
        if self.id == self.key:
            raise PlanError(
                f"`id` and `key` of {self.label} are one column: the id must stay what it is while the key changes"
            )
        if self.where and (fault := find_fault(self.where)):
            raise PlanError(f"the `where` of {self.label} {fault}")

    @property
    def label(self) -> str:
        """`table.key`, unique in a plan: names these entries in batches, views and messages."""
        return f"{self.table}.{self.key}"


class DatabaseLimits(_Table, frozen=True):
    """`[database]`."""

    max_rows_per_second: AboveZero | None = None
    """Rows rewritten per second, by all workers together; None: no limit."""
    max_replica_lag: AboveZero | None = None
    """Seconds that a streaming replica may be behind before workers stop claiming; None: they do not look."""


class Plan(_Table, frozen=True):
    """One migration: the whole file."""

    migration: MigrationSettings
    legacy: LegacySide
    production: ProductionSide
    entries: tuple[Entries, ...]
    database: DatabaseLimits = DatabaseLimits()

    def __post_init__(self) -> None:
        if not self.entries:
            raise PlanError("there is no [[entries]]: name at least one table")
        labels = [entries.label for entries in self.entries]
        for label in labels:
            if labels.count(label) > 1:
                raise PlanError(f"{label} is named twice in [[entries]]: drop one of them")

    @property
    def name(self) -> str:
        """The name of the migration."""
        return self.migration.name

    @property
    def server_side(self) -> bool:
        """Whether the production server copies by itself; auto: both sides are one endpoint and region."""
        if self.migration.transfer != "auto":
            return self.migration.transfer == "server"
        return (self.legacy.server, self.legacy.region) == (self.production.server, self.production.region)


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
