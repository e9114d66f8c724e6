"""What the queue `inspect` is."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from rowferry.batch import Outcome
from rowferry.errors import PlanError
from rowferry.plan import AboveZero, Plan, QueueSettings, SideName
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, TableUse, Words
from rowferry_queues.inspect.allowed import refuse_function

FACTS = {
    "size": "number",
    "inflated_size": "number",
    "sha256": "digest",
    "inflated_sha256": "digest",
    "type": "text",
    "encoding": "text",
    "lines": "number",
    "width": "number",
    "height": "number",
}
"""What can be computed without a function of the user's, and what kind of value it is."""
FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
MiB = 1024 * 1024
MAX_INFLATED_BYTES = 1024 * MiB


class InspectSettings(QueueSettings, frozen=True, kw_only=True):
    """`[queue.inspect]`: what is computed of each object, and where it is written."""

    columns: dict[str, str] = {}  # noqa: RUF012 - a Struct copies it
    """The column that each fact goes to: size, inflated_size, sha256, inflated_sha256, type, encoding, lines, width,
    height, or what `function` returns."""
    side: SideName = "production"
    """Which bucket the objects are read from."""
    table: str | None = None
    """The table of `columns`: `table` or `schema.table`; None: that of the entries themselves."""
    key: str | None = None
    """The column of `table` that holds an object's key."""
    id: str | tuple[str, ...] | None = None
    """The columns of `table` that hold an entry's id."""
    function: str | None = None
    """`module:function`: is called with a readable binary stream, and returns a dict of values."""
    function_seconds: AboveZero = 60.0
    """How long a call may take, without the time it waits for bytes."""
    inflate: Literal["auto", "never"] = "auto"
    """auto: gzip and zstd are inflated, by their first bytes or the object's Content-Encoding."""
    max_inflated_bytes: Annotated[int, Meta(ge=1)] = MAX_INFLATED_BYTES
    """An object that inflates to more has failed."""
    max_ratio: AboveZero = 1000.0
    """So has one that inflates to more than 16 MiB and to more than so many times its size."""

    def __post_init__(self) -> None:
        """Raise PlanError for settings that do not fit together."""
        QueueSettings.__post_init__(self)
        if not self.columns:
            raise PlanError('there are no `columns`: name those to write, for example columns = { size = "byte_size" }')
        if len({*self.columns.values(), *self.keys}) < len(self.columns) + len(self.keys):
            raise PlanError("one column is named twice: give each fact, and each key, a column of its own")
        if self.table is None and self.keys:
            raise PlanError("`key` and `id` are columns of `table`: name it, or leave them out")
        if self.table is not None and not self.keys:
            raise PlanError('`table` has no key: name the column of the object\'s key, for example key = "object_key"')
        if self.function is not None and not FUNCTION.fullmatch(self.function):
            raise PlanError(f"`function` is {self.function!r}: write module:function")
        unknown = [name for name in self.columns if name not in FACTS]
        if unknown and self.function is None:
            known = ", ".join(FACTS)
            raise PlanError(f"`columns` names {unknown[0]!r}, which is none of {known}: correct it, or name a function")

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of `id`."""
        return (self.id,) if isinstance(self.id, str) else self.id or ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows of `table` are told apart."""
        return (*self.ids, *((self.key,) if self.key is not None else ()))

    @property
    def facts(self) -> frozenset[str]:
        """What is computed here."""
        return frozenset(self.columns) & FACTS.keys()

    @property
    def returned(self) -> tuple[str, ...]:
        """What the function has to return."""
        return tuple(name for name in self.columns if name not in FACTS)


def list_tables(settings: InspectSettings, plan: Plan) -> tuple[TableUse, ...]:
    """Return the columns that are written: of the side table, or of each table of entries."""
    columns = tuple(settings.columns.values())
    if settings.table is not None:
        every = (*settings.keys, *columns)
        return (TableUse(table=settings.table, selects=every, inserts=every, updates=columns),)
    meant = dict.fromkeys(entries.table for entries in plan.entries if settings.means(entries.label))
    return tuple(TableUse(table=table, selects=columns, updates=columns) for table in meant)


def fit_plan(settings: InspectSettings, plan: Plan) -> None:
    """Raise PlanError where objects without rows are to have what only a row has, or a row has too many of them."""
    bare = [*(each.label for each in plan.objects if settings.means(each.label)), *(b.label for b in settings.buckets)]
    if bare and settings.table is None:
        raise PlanError(f"the objects of {bare[0]} have no rows: name a `table`, or [[entries]] in `of`")
    if bare and settings.ids:
        raise PlanError(f"the objects of {bare[0]} have no ids: name a `key` alone, or [[entries]] in `of`")
    if folders := [each for each in plan.entries if each.names_folders and settings.means(each.label)]:
        example = f"s3://production/{folders[0].production_object_prefix}"
        raise PlanError(
            f"the rows of {folders[0].label} name folders, and facts are of one object: name the folders themselves in "
            f'`of`, for example "{example}"'
        )


def refuse_code(settings: InspectSettings) -> None:
    """Raise MigrationFault where the function may not be run here."""
    if settings.function is not None:
        refuse_function(settings.function)


INSPECT = QueueSpec(
    name="inspect",
    perform="rowferry_queues.inspect.perform:perform",
    summary="Compute size, digest, type and more of each object as it streams by, and write them into rows.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "facts written",
            Outcome.KEPT: "the row had these facts already",
            Outcome.MISSING: "no object",
            Outcome.CONFLICT: "does not occur",
            Outcome.FAILED: "the object cannot be read, or the database refused its facts",
        },
        deed="objects inspected {finished}, facts written {migrated}",
    ),
    sources=frozenset({"table", "listing", "items"}),
    settings=InspectSettings,
    tables=list_tables,
    fits=fit_plan,
    check="rowferry_queues.inspect.check:check",
    refuses=refuse_code,
    updates_rows=True,
)
