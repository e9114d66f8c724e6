"""What a queue is given to do its work with."""

from dataclasses import dataclass
from datetime import timedelta
from threading import Event

from rowferry.batch import Attempt, Batch
from rowferry.database import Connection
from rowferry.errors import RowferryError
from rowferry_worker.flight import Flight, Load
from rowferry_worker.route import Route

LOOK_UP_EVERY = timedelta(seconds=0.25)


class Released(RowferryError):
    """The worker was told to stop now: the batch is given back as it was found."""

    retryable = True
    costs_attempt = False


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed batch, and everything a queue may use; the connection is inside the claim's transaction."""

    batch: Batch
    attempt: Attempt
    connection: Connection
    route: Route
    flight: Flight
    give_up: Event

    def wait_for(self, load: Load) -> None:
        """Wait until the journeys of a load have ended. Raises Released when the worker gives up meanwhile."""
        while not load.wait(LOOK_UP_EVERY):
            if self.give_up.is_set():
                self.flight.withdraw(load)
                raise Released("the worker was told to stop")
