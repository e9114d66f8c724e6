"""What `rowferry errors` names: to an operator, nothing else is known to be wrong."""

import json
from collections import defaultdict
from collections.abc import Mapping

from torture.world import World

ALL = "--limit=1000000"


def read_named(world: World) -> Mapping[tuple[str, int], set[str]]:
    """Return the reasons for each entry that is missing, in conflict or failed, by table without schema, and id."""
    named: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for row in json.loads(world.rowferry("errors", "--entries", "--json", ALL, statuses=(0, 1))):
        table = row["entries"].removeprefix("public.").partition(".")[0]
        named[table, int(row["entry_id"])].add(row["reason"])
    return named
