"""The command `rowferry estimate`."""

import json
from typing import Any

from support.entries.migration import Migration
from support.processes.cli import assert_went_well


def estimate(migration: Migration, *arguments: str, within: str = "2s") -> dict[str, Any]:
    migration.write_plan()
    done = migration.run("estimate", "--json", "--for", within, *arguments)
    assert_went_well(done)
    return json.loads(done.stdout)
