"""Which connections owe an answer, and until when: those that do not give it are cut."""

import os
import socket
from contextlib import suppress
from threading import Lock
from typing import Any

import psycopg

from rowferry.deadline_watch import DeadlineWatch
from rowferry.per_process import once_a_process

Session = psycopg.Connection[Any]


class Answers:
    """The connections that must be answered, and until when."""

    def __init__(self) -> None:
        """Expect nothing yet."""
        self._until: dict[object, tuple[float, Session]] = {}
        self._turn = Lock()

    def expect(self, connection: Session, until: float) -> object:
        """Have the connection cut at `until` (`time.monotonic()`), unless what is returned is settled before."""
        ticket = object()
        with self._turn:
            self._until[ticket] = until, connection
        return ticket

    def settle(self, ticket: object) -> None:
        """Say that the answer is there."""
        with self._turn:
            self._until.pop(ticket, None)

    def cancel_overdue(self, now: float) -> None:
        """Cut the connections whose time is over."""
        with self._turn:
            for ticket in [ticket for ticket, (until, _) in self._until.items() if until <= now]:
                cut(self._until.pop(ticket)[1])


@once_a_process
def all_answers() -> Answers:
    """Return what one thread of this process watches: a timer, which is a thread, for each statement costs 0.1 ms."""
    answers = Answers()
    DeadlineWatch().add(answers)
    return answers


def cut(connection: Session) -> None:
    """Shut the socket down under the thread that waits on it."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)
