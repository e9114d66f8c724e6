"""Where a worker's environment lets objects be sent to: a plan comes from the database, and is no authority."""

from collections.abc import Mapping

from rowferry.endpoint import resolve_endpoint
from rowferry.errors import UserMistake
from rowferry.plan import Side

ALLOWED_ENDPOINTS = "ROWFERRY_ALLOWED_ENDPOINTS"
"""Comma separated `scheme://host[:port]`, each with `/bucket` where one bucket is meant; unset: everything."""


def refuse_foreign_endpoint(side: Side, environ: Mapping[str, str]) -> None:
    """Raise UserMistake where the environment does not allow the endpoint and bucket of a side."""
    allowed = [entry.strip().rstrip("/") for entry in environ.get(ALLOWED_ENDPOINTS, "").split(",") if entry.strip()]
    url = resolve_endpoint(side).url
    if allowed and url not in allowed and f"{url}/{side.bucket}" not in allowed:
        words = f"The {side.name} bucket {side.bucket} at {url} is not among those that {ALLOWED_ENDPOINTS} allows"
        raise UserMistake(f"{words}; add it there, or correct the plan.")
