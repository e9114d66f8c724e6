"""What the queue `inspect` is."""

from typing import Annotated

from msgspec import Meta

from rowferry.batch import Outcome
from rowferry.errors import PlanError
from rowferry.functions import refuse_function
from rowferry.plan import AboveZero, Plan, QueueSettings, SideName
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, TableUse, Words

MiB = 1024 * 1024
FACTS = ("size", "sha256", "encoding", "lines")
"""What can be computed without a function of the user's."""


class InspectSettings(QueueSettings, frozen=True, kw_only=True):
    """`[queue.inspect]`: what is computed of each object, and where it is written."""

    columns: dict[str, str] = {}  # noqa: RUF012 - a Struct copies it
    """The column that each fact goes to: size, sha256, encoding, lines, or what `function` returns."""
    side: SideName = "production"
    """Which bucket the objects are read from."""
    table: str | None = None
    """The table of `columns`: `table` or `schema.table`; None: that of the entries themselves."""
    key: str | None = None
    """The column of `table` that holds an object's key."""
    function: str | None = None
    """`module:function`: is called with a readable binary stream, and returns a dict of values."""
    function_seconds: AboveZero = 60.0
    """How long a call may take, without the time it waits for bytes."""
    max_inflated_bytes: Annotated[int, Meta(ge=1)] = 1024 * MiB
    """An object that inflates to more has failed."""

    def __post_init__(self) -> None:
        """Raise PlanError for settings that do not fit together."""
        QueueSettings.__post_init__(self)
        if not self.columns:
            raise PlanError('there are no `columns`: name those to write, for example columns = { size = "byte_size" }')
        if (self.table is None) != (self.key is None):
            raise PlanError("`key` is the column of `table` that holds an object's key: name both, or leave both out")
        if len({*self.columns.values(), self.key}) <= len(self.columns):
            raise PlanError("a column is named twice: each fact, and `key`, needs a column of its own")
        if unknown := [name for name in self.columns if name not in FACTS and self.function is None]:
            words = f"`columns` names {unknown[0]!r}, which is none of {', '.join(FACTS)}"
            raise PlanError(f"{words}: correct it, or name a function")

    @property
    def facts(self) -> frozenset[str]:
        """What is computed without the function."""
        return frozenset(self.columns) & {*FACTS}


def list_tables(settings: InspectSettings, plan: Plan) -> tuple[TableUse, ...]:
    """Return the columns that are written: of the side table, or of each table of entries."""
    columns = tuple(settings.columns.values())
    if settings.table is not None and settings.key is not None:
        every = (settings.key, *columns)
        return (TableUse(table=settings.table, selects=every, inserts=every, updates=columns),)
    meant = dict.fromkeys(entries.table for entries in plan.entries if settings.means(entries.label))
    return tuple(TableUse(table=table, selects=columns, updates=columns) for table in meant)


def fit_plan(settings: InspectSettings, plan: Plan) -> None:
    """Raise PlanError where objects without rows have no table, or a row has too many objects."""
    bare = [*(each.label for each in plan.objects if settings.means(each.label)), *(b.label for b in settings.buckets)]
    if bare and settings.table is None:
        raise PlanError(f"the objects of {bare[0]} have no rows: name a `table`, or [[entries]] in `of`")
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
    summary="Compute size, digest and more of each object as it streams by, and write them into rows.",
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
