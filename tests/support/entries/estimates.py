"""The command `rowferry estimate`."""

import json
from typing import Any

from support.entries.migration import Migration


def estimate(migration: Migration, *arguments: str, within: str = "2s") -> dict[str, Any]:
    migration.write_plan()
    done = migration.run("estimate", "--json", "--for", within, *arguments)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("… ") for line in done.stderr.splitlines()), done.stderr
    return json.loads(done.stdout)
