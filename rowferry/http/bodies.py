"""Where the body of a request comes from that is never in memory as a whole."""

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from rowferry.errors import ObjectError
from rowferry.http.deadlines import InFlight

T = TypeVar("T")


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


async def wait_for_source(step: Awaitable[T], in_flight: InFlight | None) -> T:
    """Return what a step of a source returns; while it takes, the server owes no response. Raises SourceFailed."""
    if in_flight is not None:
        in_flight.note_waiting()
    try:
        return await step
    except ObjectError as error:
        raise SourceFailed(error) from error
    finally:
        if in_flight is not None:
            in_flight.note_sent()
