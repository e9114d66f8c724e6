"""The plan, each field once: `rowferry.toml`, the database's jsonb and the code all have this shape.

A new field is an edit here (and in docs/plan.md): its type is read, checked and explained by `plan_file`. What a type
cannot say, `__post_init__` checks, so that no plan is ever held that cannot be meant.
"""

import re
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from rowferry.errors import PlanError
from rowferry.plan.entries import Entries
from rowferry.plan.objects import BucketPrefix, ObjectPrefix
from rowferry.plan.properties import Acl, CannedAcl, Encryption, TagRule
from rowferry.plan.queues import QueueSettings
from rowferry.plan.sides import PROPERTIES, AboveZero, Addressing, LegacySide, ProductionSide, Side, SideName
from rowferry.plan.table import Table

__all__ = [
    "PROPERTIES",
    "Acl",
    "Addressing",
    "BucketPrefix",
    "CannedAcl",
    "DatabaseLimits",
    "Encryption",
    "Entries",
    "LegacySide",
    "MigrationSettings",
    "ObjectPrefix",
    "OnConflict",
    "Plan",
    "ProductionSide",
    "QueueSettings",
    "Side",
    "SideName",
    "TagRule",
    "Transfer",
]

Transfer = Literal["auto", "server", "stream"]
OnConflict = Literal["fail", "keep", "older", "overwrite"]
"""What to do where a different production object exists: report it, trust it, replace it if it was written before the
legacy object, or replace it."""

PartSize = Annotated[int, Meta(ge=5 * 1024**2, le=5 * 1024**3)]
"""Bytes of a part. Source: Amazon S3 User Guide, "Multipart upload limits"."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class MigrationSettings(Table, frozen=True):
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


class DatabaseLimits(Table, frozen=True):
    """`[database]`."""

    max_rows_per_second: AboveZero | None = None
    """Rows rewritten per second, by all workers together; None: no limit."""
    max_replica_lag: AboveZero | None = None
    """Seconds that a streaming replica may be behind before workers stop claiming; None: they do not look."""


class Plan(Table, frozen=True):
    """One migration: the whole file."""

    migration: MigrationSettings
    legacy_side: LegacySide | None = field(default=None, name="legacy")
    production_side: ProductionSide | None = field(default=None, name="production")
    entries: tuple[Entries, ...] = ()
    database: DatabaseLimits = DatabaseLimits()
    objects: tuple[ObjectPrefix, ...] = ()
    """Objects that no row names."""
    queue: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """[queue.NAME], as the queue of that name reads it (`rowferry.queue_spec`). A side that none of them needs may be
    missing."""

    def __post_init__(self) -> None:
        if not self.parts and not self.queue:
            raise PlanError("there is no [[entries]]: name at least one table, or a prefix of keys by [[objects]]")
        for side in ("legacy", "production") if not self.queue else ():  # objects are moved from one to the other
            if getattr(self, f"{side}_side") is None:
                raise PlanError(f"the file lacks the key `{side}`")
        self._refuse_copies_onto_themselves()
        for label in self.labels:
            if self.labels.count(label) > 1:
                named = "[[entries]]" if any(label == each.label for each in self.entries) else "[[objects]]"
                raise PlanError(f"{label} is named twice in {named}: drop one of them, or give each a `name`")

    @property
    def legacy(self) -> LegacySide:
        """The legacy side. Raises PlanError where the plan has none."""
        if self.legacy_side is None:
            raise self._refuse_missing("legacy")
        return self.legacy_side

    @property
    def production(self) -> ProductionSide:
        """The production side. Raises PlanError where the plan has none."""
        if self.production_side is None:
            raise self._refuse_missing("production")
        return self.production_side

    def _refuse_missing(self, side: SideName) -> PlanError:
        return PlanError(
            f"The plan {self.name} has no [{side}], and this needs it: add it, or see `rowferry queues` for what needs "
            "none."
        )

    @property
    def has_both_sides(self) -> bool:
        """Whether objects can be moved from one side to the other."""
        return self.legacy_side is not None and self.production_side is not None

    def require_both_sides(self) -> None:
        """Raise PlanError where objects cannot be moved from one side to the other."""
        _ = self.legacy, self.production

    @property
    def sides(self) -> tuple[LegacySide | ProductionSide, ...]:
        """The sides that the plan has."""
        return tuple(side for side in (self.legacy_side, self.production_side) if side is not None)

    def side(self, name: SideName) -> LegacySide | ProductionSide:
        """Return a side. Raises PlanError where the plan does not have it."""
        return self.legacy if name == "legacy" else self.production

    @property
    def parts(self) -> tuple[Entries | ObjectPrefix, ...]:
        """All that moves: entries, and objects without rows."""
        return (*self.entries, *self.objects)

    @property
    def labels(self) -> list[str]:
        """The labels of all parts."""
        return [part.label for part in self.parts]

    @property
    def rows_stay(self) -> bool:
        """Whether the rows of some entries stay as they are."""
        return any(entries.rows == "stay" for entries in self.entries)

    @property
    def rows_move(self) -> bool:
        """Whether the rows of some entries are rewritten."""
        return any(entries.rows == "move" for entries in self.entries)

    @property
    def copies_alone(self) -> bool:
        """Whether some objects are copied without a row that moves: rows that stay, or none."""
        return self.rows_stay or bool(self.objects)

    @property
    def is_one_bucket(self) -> bool:
        """Whether both sides are one bucket: copies and originals are told apart by their keys alone."""
        if len(self.sides) < 2:
            return False
        return (self.legacy.server, self.legacy.bucket) == (self.production.server, self.production.bucket)

    def _refuse_copies_onto_themselves(self) -> None:
        if not self.is_one_bucket:
            return
        for entries in self.entries:
            if entries.legacy_object_prefix == entries.production_object_prefix:
                raise PlanError(
                    f"both sides are one bucket, and the objects of {entries.label} have the same keys in both: "
                    "name another production bucket, or other keys by `to` or `production_object`"
                )
        for objects in self.objects:
            prefix, to = objects.prefix, objects.production_object_prefix
            if prefix.startswith(to) or to.startswith(prefix):
                raise PlanError(
                    f"both sides are one bucket, where the copies of {objects.label} would be listed as legacy "
                    "objects again: name another production bucket, or a `to` outside of `prefix`"
                )

    @property
    def name(self) -> str:
        """The name of the migration."""
        return self.migration.name

    @property
    def server_side(self) -> bool:
        """Whether the production server copies by itself; auto: both sides are one endpoint and region."""
        if self.migration.transfer != "auto":
            return self.migration.transfer == "server"
        return self.legacy.server == self.production.server and self.legacy.may_share_region(self.production)
