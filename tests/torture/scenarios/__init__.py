"""The scenarios, one file each: `WHAT` says in a sentence what is done, `torture(run)` does it.

`FAULTS` are the kinds of faults of which every run sees one at least, in the short form and on a slow machine too.
"""

from importlib import import_module
from types import ModuleType

NAMES = (
    "kills",
    "ordinary",
    "steps",
    "database",
    "disk",
    "failover",
    "bad_s3",
    "connections",
    "poison",
    "backends",
    "sessions",
    "read_only",
    "token",
    "login_page",
    "proxy",
    "ddl",
    "application",
    "rewrite",
    "switch",
    "chain",
    "hosts",
    "fleet",
)
"""In the order in which they run."""


def find_scenario(name: str) -> ModuleType:
    return import_module(f"torture.scenarios.{name}")
