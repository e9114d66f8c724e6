"""Reads a plan from rowferry.toml and from the database, and writes it to the database: one shape for both."""

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rowferry.errors import PlanError
from rowferry.plan import Addressing, Entries, Plan, Side, SideName, Transfer
from rowferry.plan_problems import find_mistakes, word_type_mistake

SMALLEST_PART_BYTES = 5 * 1024**2
LARGEST_PART_BYTES = 5 * 1024**3
"""The bounds of a part. Source: Amazon S3 User Guide, "Multipart upload limits"."""


class _Table(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A table of the plan file; msgspec refuses what is unknown, missing or of another type."""


class _Migration(_Table):
    name: str
    transfer: Transfer = "auto"
    max_attempts: int = 5
    simulated: bool = False
    multipart_threshold_bytes: Annotated[int, msgspec.Meta(ge=SMALLEST_PART_BYTES, le=LARGEST_PART_BYTES)] | None = None


class _Side(_Table):
    bucket: str
    endpoint_url: str | None = None
    region: str = "us-east-1"
    profile: str | None = None
    addressing: Addressing = "auto"
    max_requests_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def as_side(self, name: SideName) -> Side:
        return Side(name, **msgspec.structs.asdict(self))


class _Entries(_Table):
    table: str
    id: str
    key: str
    legacy_prefix: str = msgspec.field(name="from")
    production_prefix: str = msgspec.field(name="to")
    where: str | None = None

    def as_entries(self) -> Entries:
        return Entries(**msgspec.structs.asdict(self))


class _Database(_Table):
    max_rows_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    max_replica_lag: Annotated[float, msgspec.Meta(gt=0)] | None = None


class _Document(_Table):
    migration: _Migration
    legacy: _Side
    production: _Side
    entries: list[_Entries]
    database: _Database = msgspec.field(default_factory=_Database)

    def as_plan(self) -> Plan:
        return Plan(
            name=self.migration.name,
            legacy=self.legacy.as_side("legacy"),
            production=self.production.as_side("production"),
            entries=tuple(entries.as_entries() for entries in self.entries),
            transfer=self.migration.transfer,
            max_attempts=self.migration.max_attempts,
            simulated=self.migration.simulated,
            multipart_threshold_bytes=self.migration.multipart_threshold_bytes,
            max_rows_per_second=self.database.max_rows_per_second,
            max_replica_lag=self.database.max_replica_lag,
        )


def read_plan(path: Path) -> Plan:
    """Return the plan in a TOML file. Raises PlanError, one sentence, for whatever is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(
            f"There is no plan at {path}: write one (see `rowferry plan --example`) or name another with --plan."
        ) from None
    except OSError as error:
        words = f"The plan {path} cannot be read ({error.strerror}): name a file that can be with --plan."
        raise PlanError(words) from error
    except UnicodeDecodeError as error:
        raise PlanError(f"The plan {path} cannot be read ({error}): save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"The plan {path} is not valid TOML: {error}.") from error
    return parse_plan(document, str(path))


def parse_plan(document: dict[str, Any], source: str) -> Plan:
    """Return the plan that a document (the file's, or the database's jsonb) describes. Raises PlanError."""
    try:
        plan = msgspec.convert(document, _Document).as_plan()
    except msgspec.ValidationError as error:
        raise PlanError(f"In the plan {source}, {word_type_mistake(str(error))}.") from error
    _check_meaning(plan, source)
    return plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain dicts and lists, for jsonb; `parse_plan` reads it back. Holds no secret."""
    values = asdict(plan)
    document = _Document(
        migration=_Migration(**_pick(values, _Migration)),
        legacy=_Side(**_pick(values["legacy"], _Side)),
        production=_Side(**_pick(values["production"], _Side)),
        entries=[_Entries(**entries) for entries in values["entries"]],
        database=_Database(plan.max_rows_per_second, plan.max_replica_lag),
    )
    return msgspec.to_builtins(document)


def _pick(values: dict[str, Any], table: type[_Table]) -> dict[str, Any]:
    """Return the values that a table of the plan file has a key for."""
    return {name: values[name] for name in table.__struct_fields__}


def _check_meaning(plan: Plan, source: str) -> None:
    """Raise PlanError for the first thing that has the right type but cannot be meant."""
    for mistake in find_mistakes(plan):
        raise PlanError(f"In the plan {source}, {mistake}.")
