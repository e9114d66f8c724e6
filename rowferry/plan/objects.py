"""`[[objects]]`: objects that no row names, by the prefix of their keys."""

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
