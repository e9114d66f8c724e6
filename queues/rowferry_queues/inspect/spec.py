"""What the queue `inspect` is."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from rowferry.batch import Outcome
from rowferry.errors import PlanError
from rowferry.functions import refuse_function
from rowferry.plan import AboveZero, Plan, QueueSettings, SideName
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, TableUse, Words
from rowferry_queues.inspect.content_types import HEAD_BYTES

MiB = 1024 * 1024
DIMENSIONS = frozenset({"width", "height"})
OF_HEAD = DIMENSIONS | {"size", "type", "encoding"}
"""What the first bytes tell, and the headers that come with them."""
FACTS = {
    **dict.fromkeys(("size", "inflated_size", "lines", "width", "height"), "number"),
    **dict.fromkeys(("sha256", "inflated_sha256"), "digest"),
    **dict.fromkeys(("type", "encoding"), "text"),
}
"""What can be computed without a function of the user's, and what kind of value it is."""
FUNCTION = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
IMAGE_HEAD_BYTES = 256 * 1024
"""Where an image tells its size: behind EXIF data and colour profiles, of 64 KiB at most each."""


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
    """auto: gzip and zstd are decompressed if the first bytes show that form."""
    max_inflated_bytes: Annotated[int, Meta(ge=1)] = 1024 * MiB
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
        if unknown := [name for name in self.columns if name not in FACTS and self.function is None]:
            words = f"`columns` names {unknown[0]!r}, which is none of {', '.join(FACTS)}"
            raise PlanError(f"{words}: correct it, or name a function")

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of `id`."""
        return (self.id,) if isinstance(self.id, str) else self.id or ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows of `table` are told apart."""
        return self.ids if self.key is None else (*self.ids, self.key)

    @property
    def facts(self) -> frozenset[str]:
        """What is computed without the function."""
        return frozenset(self.columns) & FACTS.keys()

    @property
    def head_bytes(self) -> int:
        """How many bytes of the content tell its type, or the size of an image."""
        return IMAGE_HEAD_BYTES if self.facts & DIMENSIONS else HEAD_BYTES

    @property
    def is_of_head(self) -> bool:
        """Whether these bytes, and those that tell the encoding, are enough."""
        return self.function is None and self.facts <= OF_HEAD


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
    if bare and (settings.table is None or settings.ids):
        words = "rows: name a `table`" if settings.table is None else "ids: name a `key` alone"
        raise PlanError(f"the objects of {bare[0]} have no {words}, or [[entries]] in `of`")
    if folders := [each for each in plan.entries if each.names_folders and settings.means(each.label)]:
        example = f"s3://production/{folders[0].production_object_prefix}"
        words = f"the rows of {folders[0].label} name folders, and facts are of one object"
        raise PlanError(f'{words}: name the folders themselves in `of`, for example "{example}"')


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
