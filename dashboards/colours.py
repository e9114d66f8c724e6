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
    "need_somebody": ("needs an operator", "red"),
    "stalled": ("stalled", "red"),
    "running": ("running", "green"),
    "paused": ("paused", "yellow"),
    "waiting": ("waiting for retries", "orange"),
    "no_workers": ("no workers", "red"),
}
"""States of a migration: the word on the dashboard, and its colour."""

QUEUE_STATES = STATES | {
    "running": ("running", "blue"),
    "slowest": ("slowest", "orange"),
    "waiting": ("waiting", "orange"),
    "idle": ("idle", "text"),
}
"""The same of a queue; `slowest`: it is running, and holds the end."""

STEPS = {
    "claim": "purple",
    "read": "green",
    "perform": "blue",
    "update": "orange",
    "commit": "dark-orange",
    "held": "yellow",
}
"""Steps of a batch, in their order; held on purpose has the colour of a pause."""

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

VERDICTS = {
    "DONE": "green",
    "RETRY": "orange",
    "ERROR": "red",
    "released": "blue",
    "RELEASED": "blue",
    "running or crashed": "purple",
}

STATUSES = {"INIT": "blue", "DONE": "green", "ERROR": "red"}
"""Statuses of a batch."""

SIDES = {"legacy": "blue", "production": "green"}
"""The two S3 servers."""

TRANSACTIONS = {"rowferry": "blue", "others": "orange"}
"""Whose oldest transaction it is."""
