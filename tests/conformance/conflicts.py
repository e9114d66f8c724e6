"""Objects whose production keys are taken already: by different objects, which must stay, and by equal ones."""

import os

from conformance.environment import Environment
from support.entries.entry_table import TO
from support.s3.objects import digest

TYPE = "image/png"
"""Said of equal objects, since servers have other defaults."""


def plant_existing(setup: Environment, check: str, size_bytes: int, *, different: int) -> None:
    """Plant objects whose production keys are taken: by different objects as large, and by one that is equal."""
    for number in range(different):
        name = f"{check}/{number}"
        setup.plant(check, name, os.urandom(size_bytes))
        setup.migration.production.put(TO + name, os.urandom(size_bytes))
    body = os.urandom(size_bytes)
    setup.plant(check, f"{check}/equal", body, ContentType=TYPE)
    setup.migration.production.put(f"{TO}{check}/equal", body, ContentType=TYPE)
    setup.existing |= {
        name: digest(setup.migration.production.read(TO + name)) for name in setup.planted[check].values()
    }


def look_existing(setup: Environment, check: str, *, in_parts: bool) -> None:
    names = setup.planted[check]
    changed = [n for n in names.values() if digest(setup.migration.production.read(TO + n)) != setup.existing[n]]
    setup.hold(not changed, f"{len(changed)} of {len(names) - 1} different objects overwritten: {changed}")
    rows, failures = setup.migration.rows(), {each["entry_id"]: each for each in setup.migration.failures()}
    for row_id, name in names.items():
        if name.endswith("equal"):
            setup.hold_moved(row_id, name)
            continue
        setup.hold(rows[row_id] == f"image/{name}", f"the row of {name} moved on to the different object")
        if setup.can_write(in_parts=in_parts):
            told = failures.get(row_id, {}).get("outcome")
            setup.hold(told == "conflict", f"{name} is told as {told}: {setup.explain(row_id)}")
