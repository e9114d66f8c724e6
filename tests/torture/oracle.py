"""The contents that each row's object may have at this moment. Only the test harness knows them."""

from hashlib import sha256
from threading import Lock


class Oracle:
    """Digests by row id; threads may share it.

    What becomes right is said here before it is done, what is right no longer only afterwards: whoever looks on in
    between must not take the one or the other for a violation.
    """

    def __init__(self) -> None:
        self._turn = Lock()
        self._digests: dict[str, frozenset[bytes]] = {}

    def expect(self, row_id: object, *bodies: bytes) -> None:
        """From now on the row's object holds one of these bodies, and nothing else; none: there is no object."""
        with self._turn:
            self._digests[str(row_id)] = frozenset(map(digest, bodies))

    def allow(self, row_id: object, body: bytes) -> None:
        """From now on this body is right as well: the application is about to overwrite the object."""
        with self._turn:
            self._digests[str(row_id)] = self._digests.get(str(row_id), frozenset()) | {digest(body)}

    def forget(self, row_id: object) -> None:
        """The application has deleted the row."""
        with self._turn:
            self._digests.pop(str(row_id), None)

    def allows(self, row_id: str, body: bytes | None) -> bool:
        """Return whether the row's object may hold this body; None stands for an object that is not there."""
        with self._turn:
            allowed = self._digests.get(row_id)
        if body is None:
            return allowed == frozenset()
        return allowed is not None and digest(body) in allowed

    def ids(self) -> set[str]:
        with self._turn:
            return set(self._digests)


def digest(body: bytes) -> bytes:
    return sha256(body).digest()
