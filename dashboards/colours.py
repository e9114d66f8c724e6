"""One palette: what has a colour on one dashboard has it on the other."""

OUTCOMES = {
    "migrated": "green",
    "kept": "blue",
    "changed": "text",
    "deleted": "purple",
    "missing": "orange",
    "conflict": "yellow",
    "failed": "red",
}
"""Outcomes of entries, in the order in which they are stacked."""

ATTENTION = ("missing", "conflict", "failed")
"""Outcomes that need an operator."""

STATES = {
    "done": ("done", "green"),
    "needs_operator": ("needs an operator", "red"),
    "stalled": ("stalled", "red"),
    "running": ("running", "green"),
    "paused": ("paused", "yellow"),
    "waiting": ("waiting for retries", "orange"),
    "no_workers": ("no workers", "red"),
}
"""States of a migration: the word on the dashboard, and its colour."""

QUEUE_STATES = {
    **STATES,
    "running": ("running", "transparent"),
    "holds_the_end": ("holds the end", "dark-orange"),
    "idle": ("waits for the others", "transparent"),
}
"""States of a queue: those of a migration, and its place in the chain. Only what is to be looked at has a colour."""

SICK = {
    "dark-red": "finishes nothing|fail|of the fleet",
    "dark-orange": "throttled|its metrics|lost",
    "transparent": "well|medians|one host|ended",
}
"""Why a host is sick: the words in it, by its colour."""

STEPS = {
    "claim": ("claim", "purple"),
    "read": ("read rows", "green"),
    "perform": ("perform: S3", "blue"),
    "update": ("update rows", "orange"),
    "commit": ("commit", "dark-orange"),
    "held": ("held by a limit", "yellow"),
}
"""Steps of a batch, in their order: the words on the dashboard, and the colour; held has that of a pause."""
STEP_COLOURS = dict(STEPS.values())

FAULTS = {
    "throttled": "orange",
    "timedout": "yellow",
    "serverfault": "red",
    "accessdenied": "dark-red",
    "unreachable": "purple",
    "cutoff": "light-purple",
    "cancelled": "text",
}
"""Results of requests that failed; the first four are told apart at a glance, and none is green."""

SIDES = {"legacy": "blue", "production": "green"}
"""The two S3 servers."""

TRANSACTIONS = {"rowferry": "blue", "others": "orange"}
"""Whose oldest transaction it is."""
