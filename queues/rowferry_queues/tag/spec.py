"""What the queue `tag` is."""

from collections.abc import Mapping
from typing import Any

from msgspec import field

from rowferry.batch import Entry, Outcome
from rowferry.errors import ObjectConflict, PlanError
from rowferry.plan import Plan, QueueSettings
from rowferry.plan.properties import MAX_TAGS
from rowferry.plan.table import Table
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, Words
from rowferry.sql_condition import find_fault


class TagConflict(ObjectConflict):
    """S3 takes no such tag, or no further one; or two rows ask for different values of one object."""


class FromColumn(Table, frozen=True):
    """The value of a tag that each row has for itself."""

    column: str
    """Read as text; where it is null, the object keeps the tag that it has, or none."""


class TagSettings(QueueSettings, frozen=True, kw_only=True):
    """`[queue.tag]`."""

    tags: dict[str, str | FromColumn] = field(name="set", default_factory=dict[str, str | FromColumn])
    """The value of each tag by its name: a text, or the column that has it."""
    where: str | None = None
    """An SQL condition over the table's columns: only objects of rows that meet it are tagged."""

    def __post_init__(self) -> None:
        QueueSettings.__post_init__(self)
        if not 1 <= len(self.tags) <= MAX_TAGS:
            raise PlanError(
                f"`set` has {len(self.tags)} tags: write 1 to {MAX_TAGS}, as in `set = {{ tier = 'cold' }}`"
            )
        for name, value in self.tags.items():
            if isinstance(value, FromColumn) and not value.column:
                raise PlanError(f"the tag {name!r} of `set` names no column")
        if self.where is not None and (fault := find_fault(self.where)):
            raise PlanError(f"the `where` {fault}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `set`, each once."""
        return tuple(dict.fromkeys(value.column for value in self.tags.values() if isinstance(value, FromColumn)))

    @property
    def reads_rows(self) -> bool:
        """Whether a row decides which tags its objects get."""
        return bool(self.columns) or self.where is not None

    def fit(self, plan: Plan) -> None:
        """Raise PlanError where objects without rows are to have what only a row can tell."""
        bare = [*(each.label for each in plan.objects if self.means(each.label)), *(b.label for b in self.buckets)]
        if bare and self.reads_rows:
            named = " and ".join(["a column in `set`"] * bool(self.columns) + ["`where`"] * (self.where is not None))
            words = f"{named} can only be there for [[entries]], so name those in `of`"
            raise PlanError(f"the objects of {bare[0]} have no rows: {words}")

    def choose_tags(self, entry: Entry) -> dict[str, str]:
        """Return the tags that the objects of an entry are to get; `entry.values`: those of `columns`."""
        values: Mapping[str, Any] = dict(zip(self.columns, entry.values, strict=False))
        found = {
            name: values.get(one.column) if isinstance(one, FromColumn) else one for name, one in self.tags.items()
        }
        return {name: value for name, value in found.items() if value is not None}


TAG = QueueSpec(
    name="tag",
    perform="rowferry_queues.tag.perform:perform",
    summary="Set tags of production objects; the other tags that they have stay.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "tags set",
            Outcome.KEPT: "had these tags already",
            Outcome.MISSING: "no production object",
            Outcome.CONFLICT: "S3 takes no such tags, or rows disagree",
            Outcome.FAILED: "any other error",
        },
        deed="objects tagged {migrated}, had their tags {kept}",
    ),
    form="production",
    sources=frozenset({"table", "listing"}),
    sides=frozenset({"production"}),
    settings=TagSettings,
    columns=lambda settings, _entries: settings.columns,
    where=lambda settings: settings.where,
    check="rowferry_queues.tag.check:check",
    fits=TagSettings.fit,
)
