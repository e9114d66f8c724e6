"""What the queue `tag` is."""

from collections.abc import Mapping
from typing import Any

from msgspec import field

from rowferry.batch import Entry, Outcome
from rowferry.errors import PlanError
from rowferry.plan import Entries, Plan, QueueSettings
from rowferry.plan.properties import MAX_TAGS
from rowferry.plan.table import Table
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, Words
from rowferry.sql_condition import find_fault as find_fault_of_condition
from rowferry_queues.tag.merge import find_fault


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
            if fault := find_fault(name, value if isinstance(value, str) else ""):
                raise PlanError(f"the tag {name!r} of `set` {fault}: write another one")
            if isinstance(value, FromColumn) and not value.column:
                raise PlanError(f"the tag {name!r} of `set` names no column")
        if self.where is not None and (fault := find_fault_of_condition(self.where)):
            raise PlanError(f"the `where` {fault}")
        if self.buckets and self.reads_rows:
            raise PlanError(f"`of` names {self.buckets[0].label}, whose objects have no rows: {self._remedy}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `set`, each once."""
        return tuple(dict.fromkeys(value.column for value in self.tags.values() if isinstance(value, FromColumn)))

    @property
    def reads_rows(self) -> bool:
        """Whether a row decides which tags its objects get."""
        return bool(self.columns) or self.where is not None

    @property
    def _remedy(self) -> str:
        named = [*(["a column in `set`"] if self.columns else []), *(["`where`"] if self.where is not None else [])]
        return f"{' and '.join(named)} can only be there for [[entries]], so name those in `of`"

    def fit(self, plan: Plan) -> None:
        """Raise PlanError where objects without rows are to have what only a row can tell."""
        bare = next((objects.label for objects in plan.objects if self.means(objects.label)), None)
        if bare is not None and self.reads_rows:
            raise PlanError(f"the objects of {bare} have no rows: {self._remedy}")

    def choose_tags(self, entry: Entry) -> dict[str, str]:
        """Return the tags that the objects of an entry are to get; `entry.values`: those of `columns`."""
        values: Mapping[str, Any] = dict(zip(self.columns, entry.values, strict=False))
        found = {
            name: values.get(value.column) if isinstance(value, FromColumn) else value
            for name, value in self.tags.items()
        }
        return {name: value for name, value in found.items() if value is not None}


def read_columns(settings: TagSettings, _entries: Entries) -> tuple[str, ...]:
    """Return the columns that have values of tags."""
    return settings.columns


def read_where(settings: TagSettings) -> str | None:
    """Return the condition that rows must meet."""
    return settings.where


def fit_plan(settings: TagSettings, plan: Plan) -> None:
    """Raise PlanError where the settings do not fit the plan."""
    settings.fit(plan)


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
    columns=read_columns,
    where=read_where,
    check="rowferry_queues.tag.check:check",
    fits=fit_plan,
)
