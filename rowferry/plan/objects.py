"""`[[objects]]`: objects that no row names, by the prefix of their keys."""

from typing import NamedTuple

from rowferry.errors import PlanError
from rowferry.plan.sides import SideName
from rowferry.plan.table import Table


class ObjectPrefix(Table, frozen=True):
    """The objects of the legacy bucket whose keys begin with a prefix."""

    prefix: str
    """Empty: the whole bucket."""
    to: str | None = None
    """What production keys begin with instead; None: the prefix itself."""
    name: str | None = None
    """A name for these objects; None: the prefix and an asterisk."""

    @property
    def label(self) -> str:
        """Unique in a plan: names these objects in batches, views and messages."""
        return self.name or f"{self.prefix}*"

    @property
    def legacy_object_prefix(self) -> str:
        """What the keys of legacy objects begin with."""
        return self.prefix

    @property
    def production_object_prefix(self) -> str:
        """What the keys of production objects begin with."""
        return self.prefix if self.to is None else self.to


class BucketPrefix(NamedTuple):
    """The objects of one side's bucket whose keys begin with a prefix, named by a queue's `of`."""

    side: SideName
    prefix: str

    @property
    def label(self) -> str:
        """`s3://side/prefix`: names these objects in batches, views and messages."""
        return f"s3://{self.side}/{self.prefix}"

    @classmethod
    def parse(cls, label: str) -> "BucketPrefix":
        """Read `s3://production/prefix`. Raises PlanError where it names no side."""
        name, slash, prefix = label.removeprefix("s3://").partition("/")
        if name == "legacy" and slash:
            return cls("legacy", prefix)
        if name == "production" and slash:
            return cls("production", prefix)
        raise PlanError(f"`of` is {label!r}: write s3://legacy/ or s3://production/ and a prefix of its keys")
