"""The command `rowferry estimate`."""

import json
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from rowferry_cli.estimate import drive, measure
from support.entries.migration import Migration
from support.processes.cli import assert_went_well


def estimate(migration: Migration, *arguments: str, within: str = "20s", at_pace: bool = False) -> dict[str, Any]:
    """Return the estimate; unless its pace is what a test is about, measuring ends when the sample has been seen."""
    migration.write_plan()
    with ExitStack() as until:
        if not at_pace:
            until.enter_context(patch.object(measure, "is_steady", lambda _: True))
            until.enter_context(patch.object(drive, "SLICE", timedelta(seconds=0.02)))
        done = migration.run("estimate", "--json", "--for", within, *arguments)
    assert_went_well(done)
    return json.loads(done.stdout)
