"""`[queue.NAME]`: what all queues have in common; each queue adds settings of its own."""

from typing import Annotated

from msgspec import Meta

from rowferry.errors import PlanError
from rowferry.plan.objects import BucketPrefix
from rowferry.plan.table import Table

Places = Annotated[int, Meta(ge=1, le=1023)]
"""As many places as `rowferry.claim_batch` tells apart."""
Weight = Annotated[float, Meta(gt=0, le=1000)]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]


class QueueSettings(Table, frozen=True, kw_only=True):
    """`[queue.NAME]`: how one queue of a migration works, and which others go on with its batches."""

    then: tuple[str, ...] = ()
    """The queues that get what this one has settled, in the transaction that settles it."""
    of: str | tuple[str, ...] | None = None
    """Labels of the plan's [[entries]] and [[objects]], or `s3://production/prefix`; None: all entries and objects."""
    priority: Priority = 0
    """Batches of a higher priority are claimed first."""
    weight: Weight = 1.0
    """The queue's share of the claims, among queues of one priority, is its part of the sum of their weights."""
    max_claimed: Places | None = None
    """Batches that all workers together may have claimed at once; None: no limit."""

    def __post_init__(self) -> None:
        _ = self.buckets  # raises
        if twice := [name for number, name in enumerate(self.then) if name in self.then[:number]]:
            raise PlanError(f"`then` names {twice[0]} twice: name it once")

    @property
    def named(self) -> tuple[str, ...]:
        """What `of` names; empty: all."""
        return (self.of,) if isinstance(self.of, str) else self.of or ()

    @property
    def buckets(self) -> tuple[BucketPrefix, ...]:
        """The buckets among them."""
        return tuple(BucketPrefix.parse(name) for name in self.named if name.startswith("s3://"))

    def means(self, label: str) -> bool:
        """Return whether the entries or objects of this label are meant."""
        return not self.named or label in self.named
