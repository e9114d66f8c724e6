"""The queues that are known here."""

from dataclasses import dataclass

from rowferry.errors import UsageError
from rowferry.queues import find_queue, list_queues, name_packages


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """A queue that is installed here."""

    name: str
    package: str
    """The distribution that it comes from, with its version."""
    summary: str = ""
    fault: str | None = None
    """Why it cannot be used; None: it can."""


def list_known() -> list[KnownQueue]:
    """Return the queues that are installed here, a faulty one with its fault."""
    found: list[KnownQueue] = []
    for name in list_queues():
        try:
            found.append(KnownQueue(name=name, package=name_packages(name), summary=find_queue(name).summary))
        except UsageError as error:
            found.append(KnownQueue(name=name, package=name_packages(name), fault=str(error)))
    return found
