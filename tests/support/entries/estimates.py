"""The command `rowferry estimate`, and what a real migration sends in its place."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from support.entries.migration import Migration
from support.processes.cli import assert_went_well
from support.s3.request_log import LoggedRequest

METHODS = {"HeadObject": "HEAD", "CreateMultipartUpload": "POST", "CompleteMultipartUpload": "POST"}


def estimate(migration: Migration, *arguments: str) -> dict[str, Any]:
    """Return the document of an estimate."""
    migration.write_plan()
    done = migration.run_here("estimate", "--json", *arguments)
    assert_went_well(done)
    return json.loads(done.stdout)


def read_methods(estimated: dict[str, Any]) -> Counter[str]:
    """Return the requests of an estimate, by side and HTTP method."""
    counts: Counter[str] = Counter()
    for side in ("legacy", "production"):
        for operation, number in estimated["requests"][side].items():
            counts[f"{side} {METHODS.get(operation, 'GET' if operation[0] in 'GL' else 'PUT')}"] += number
    return counts


def count_methods(migration: Migration, seen: Iterable[LoggedRequest]) -> Counter[str]:
    """Return the same of requests that came, but for looks at a bucket."""
    sides = {migration.legacy.bucket: "legacy", migration.production.bucket: "production"}
    return Counter(f"{sides[each.bucket]} {each.method}" for each in seen if each.key or each.method != "HEAD")
