"""What a queue is, without its work: enqueuer, check, reports and worker all read it here.

The entry point of a queue (group `rowferry.queues`) names a QueueSpec. Its `perform` is imported by workers alone, so a
specification may import nothing of `rowferry_worker`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import Struct

from rowferry.batch import Outcome
from rowferry.errors import PlanError
from rowferry.keys import Form
from rowferry.plan import Entries, Plan, QueueSettings, SideName
from rowferry.plan_file import explain

SourceName = Literal["table", "listing", "items"]
"""Where the entries of a batch are: rows of a table, objects of a bucket's listing, or the payload itself."""

SOURCE_WORDS: Mapping[SourceName, str] = {
    "table": "rows of a table",
    "listing": "a bucket's listing",
    "items": "items",
}

ROW_CHANGED = {
    Outcome.CHANGED: "the application changed the row meanwhile",
    Outcome.DELETED: "the row, or the object without one, was deleted meanwhile",
}
"""What these two outcomes mean for most queues."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class QueueChoices(Struct, frozen=True, kw_only=True):
    """What one pass is asked for, beside its entries. Each queue has its own."""

    def payload(self, *, stays: bool) -> dict[str, Any]:
        """Return what the payload of the pass's batches says, beside their source.

        `stays`: they are of rows that stay as they are, or of objects without rows.
        """
        del stays
        return {}

    def replaces(self, *, stays: bool) -> bool:
        """Return whether different production objects may be replaced."""
        del stays
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a queue speaks of its outcomes."""

    outcomes: Mapping[Outcome, str]
    """What each means."""
    deed: str
    """What was done so far, with {finished}, {updated} (migrated and kept) and the outcomes as counts."""


def describe_fault(error: BaseException) -> str:
    """Return what the code of a package raised, in one line of at most 1000 characters; it may be anything.

    SystemExit, which would end this process, is an error like others.
    """
    try:
        return " ".join(f"{type(error).__name__}: {error}".split())[:1000]
    except Exception:  # noqa: BLE001 - of the error's own code
        return type(error).__name__


@dataclass(frozen=True, slots=True)
class TableUse:
    """What the workers of a queue do with one table, beside reading the columns of its entries."""

    table: str
    """`schema.table`, or as the search path finds it: written as in [[entries]]."""
    selects: tuple[str, ...] = ()
    inserts: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpec:
    """One queue."""

    name: str
    """A lower-case word, up to 63 letters, digits and `_`: the name of its entry point, and `queue_name` in SQL."""
    perform: str
    """`module:function`: what a worker calls with a batch; see rowferry_worker/queues.py."""
    summary: str
    """What it does, in one sentence."""
    words: Words
    words_alone: Words | None = None
    """The same where no row moves; None: they are no others."""
    form: Form | None = None
    """The form of the entries that need the work; None: that of the settings' `side`."""
    sources: frozenset[SourceName] = frozenset({"table"})
    sides: frozenset[SideName] = frozenset()
    """The buckets that are opened before a batch is performed; without any, the queue needs no S3."""
    settings: type[QueueSettings] = QueueSettings
    """Of the plan's [queue.NAME]."""
    choices: type[QueueChoices] = QueueChoices
    columns: Callable[[Any, Entries], tuple[str, ...]] = lambda _settings, _entries: ()
    """The columns of a row that are read with its key, by settings and entries; the role of workers must read them."""
    tables: Callable[[Any, Plan], tuple[TableUse, ...]] = lambda _settings, _plan: ()
    """The columns that workers write, and the side tables that they use, by settings and plan. The role of workers is
    granted just these, and `rowferry check` finds what is missing. An upsert selects its key and what it takes from
    `excluded`, too."""
    check: str | None = None
    """`module:function`: what `rowferry check` finds about this queue beside what holds for all; see
    rowferry_enqueue/checks/queues/queue_check.py. None: nothing."""
    where: Callable[[Any], str | None] = lambda _settings: None
    """An SQL condition over the row that its entries meet besides, by settings; None: all rows are meant."""
    fits: Callable[[Any, Plan], None] = lambda _settings, _plan: None
    """Raises PlanError where the settings do not fit the rest of a plan."""
    refuses: Callable[[Any], None] = lambda _settings: None
    """Raises UsageError where the settings name code that this host does not allow; asked before anything is enqueued.
    Workers ask again by themselves: the plan's writer may have another environment."""
    makes_passes: bool = False
    """Whether its passes over rows that stay are kept in `rowferry.pass`, so that later ones take what changed."""
    needs_way_back: bool = False
    """Whether a production row must tell its legacy objects."""
    retries_unsettled: bool = True
    """Whether a retry reads only what the attempt before has left; else what still has the form.

    Where the choices say `read_again`, since settled entries keep the form, it always does."""
    writes_objects: bool = False
    """Whether the object of a MIGRATED entry was written."""
    gives_form: Form | None = None
    """The form that the rows of its settled entries have; None: the same as before."""
    updates_rows: bool = False
    """Whether rows are updated, under the plan's `max_rows_per_second`."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a queue: use a lower-case word")

    def read_settings(self, plan: Plan) -> QueueSettings:
        """Return the plan's [queue.NAME]. Raises PlanError where it is not as this queue understands it."""
        try:
            settings = msgspec.convert(plan.queue.get(self.name, {}), self.settings)
            self.fits(settings, plan)
        except msgspec.ValidationError as error:
            where, place = str(error), f"$.queue.{self.name}"
            named = where.replace("`$.", f"`{place}.") if " - at `$" in where else f"{where} - at `{place}`"
            raise PlanError(f"In the plan {plan.name}, {explain(named)}.") from error
        except PlanError as error:
            raise PlanError(f"In [queue.{self.name}] of the plan {plan.name}, {error}.") from error
        except Exception as error:
            words = f"the package of that queue failed ({describe_fault(error)}): fix it"
            raise PlanError(f"In [queue.{self.name}] of the plan {plan.name}, {words}.") from error
        else:
            return settings

    def find_sides(self, settings: QueueSettings) -> frozenset[SideName]:
        """Return the buckets that it needs: the settings' `side` is one of them."""
        side: SideName | None = getattr(settings, "side", None)
        return self.sides if side is None else self.sides.union((side,))

    def find_form(self, settings: QueueSettings) -> Form:
        """Return the form of the entries that need the work."""
        return self.form or getattr(settings, "side", "production")

    def choose_words(self, *, alone: bool) -> Words:
        """Return how it speaks of its outcomes; `alone`: of a migration without rows that move."""
        return (self.words_alone if alone else None) or self.words
