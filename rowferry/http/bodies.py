"""Where the body of a request comes from that is never in memory as a whole."""

from collections.abc import Sequence
from typing import Protocol

from rowferry.errors import ObjectError


class SourceFailed(Exception):
    """What was to bring the body of a request has failed, not the request."""

    def __init__(self, error: ObjectError) -> None:
        """Keep why."""
        super().__init__(str(error))
        self.error = error


class BodySource(Protocol):
    """Brings the body of a request piece by piece."""

    length: int
    """In bytes; `read` never returns more."""

    async def open(self) -> None:
        """Begin, or begin anew where some was read. Called before each try, while no connection is held for it."""
        ...

    async def read(self) -> Sequence[bytes]:
        """Return the next pieces as soon as there are any; nothing at the end, or when `wake` is called."""
        ...

    def wake(self) -> None:
        """End the wait of `read`: no more is needed."""
        ...
