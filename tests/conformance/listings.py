"""What is asked of a server's lists: of objects that no table names, and of the parts of an upload that is resumed."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

from botocore.exceptions import ClientError

from conformance.environment import MIB, PART_BYTES, Environment
from support.entries.listed_objects import put_objects
from support.processes.processes import wait_for
from support.s3.request_log import RequestLog, logged

OBJECTS = 1050
"""More than one page of a list."""
TARGET = "of-resumed/large"
RESUMED_BYTES = 6 * PART_BYTES - MIB
LAST_PART = 6
PART_NUMBER = re.compile(r"partNumber=(\d+)")


def check_objects(setup: Environment) -> None:
    """`[[objects]]`: what the legacy server lists arrives, and nothing else does."""
    names = [f"{number:04}.txt" for number in range(OBJECTS)]
    with planned(setup, "listed"):
        put_objects(setup.migration, names, "listed/")
        done = setup.run("migrate", "--yes", "--processes", "1")
        words = (done.stdout + done.stderr)[-500:]
        setup.hold(done.returncode == 0, f"`migrate` of objects ended with {done.returncode}: {words}")
    found = [key for key in setup.migration.production.listing() if key.startswith("of-listed/")]
    setup.hold(sorted(found) == [f"of-listed/{name}" for name in names], f"{len(found)} of {OBJECTS} arrived")
    for name in names[:: OBJECTS // 10]:
        body = setup.migration.production.read(f"of-listed/{name}")
        setup.hold(body == f"body of {name}".encode(), f"{name} is another: {body}")


def check_resume(setup: Environment) -> Iterator[str]:
    """A worker that is killed costs the part that was under way: the next one asks which parts there are."""
    try:
        hold_resumed(setup)
    except ClientError as error:
        if error.operation_name != "ListMultipartUploads":
            raise
        yield "does not list unfinished uploads"


def hold_resumed(setup: Environment) -> None:
    body = os.urandom(RESUMED_BYTES)
    migration = setup.migration
    migration.legacy.put("resumed/large", body)
    with planned(setup, "resumed", transfer="stream"), reached_through_log(setup) as log, redirect_stdout(StringIO()):
        migration.enqueue()
        with log.holding(lambda seen: read_part(seen.query) == LAST_PART) as held, migration.workers(1) as (worker,):
            wait_for(lambda: held and setup.count_parts(TARGET) == LAST_PART - 1)
            worker.kill()
        migration.finish_after_kills()
    sent = Counter(part for seen in log.seen if seen.method == "PUT" and (part := read_part(seen.query)))
    again = sent - Counter([*range(1, LAST_PART + 1), LAST_PART])
    setup.hold(not again, f"the parts {sorted(again)} were sent again")
    setup.hold(migration.production.read(TARGET) == body, "the object is another")
    setup.hold(setup.count_parts(TARGET) is None, "an upload is left open")


def read_part(query: str) -> int | None:
    """Return the number of the part that a query names."""
    found = PART_NUMBER.search(query)
    return int(found[1]) if found else None


@contextmanager
def planned(setup: Environment, name: str, **settings: Any) -> Iterator[None]:
    """Have the plan move the objects below a prefix by a migration of its own, until the block ends."""
    plan = setup.migration.plan
    kept = dict(plan)
    plan["migration"] = {**plan["migration"], "name": name, **settings}
    plan["entries"], plan["objects"] = [], [{"prefix": f"{name}/", "to": f"of-{name}/"}]
    setup.migration.write_plan()
    try:
        yield
    finally:
        plan.clear()
        plan.update(kept)
        setup.migration.write_plan()


@contextmanager
def reached_through_log(setup: Environment) -> Iterator[RequestLog]:
    """Have the production server reached through a log of requests, and the legacy one too where they are the same."""
    migration = setup.migration
    with logged(migration.production.endpoint_url) as log:
        for side in ("legacy", "production"):
            if migration.plan[side]["endpoint_url"] == migration.production.endpoint_url:
                migration.plan[side] = {**migration.plan[side], "endpoint_url": log.endpoint_url}
        migration.write_plan()
        yield log
