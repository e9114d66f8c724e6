"""Objects that this process has written and the server has not kept as they were sent: they may be written over."""

from collections.abc import Generator
from contextlib import contextmanager

from rowferry.errors import ObjectDamaged
from rowferry.s3.responses import Response

MOST_KEYS = 1000
"""So many are remembered at most; the oldest is forgotten first."""


class DamagedWrite(ObjectDamaged):
    """The server says itself that it has written something else than was sent."""

    etag = ""
    """The ETag that it tells of that, unquoted; empty where what stands there may be another writer's."""

    @classmethod
    def named(cls, code: str, message: str, etag: str) -> "DamagedWrite":
        """Return the error of the object that has this ETag."""
        error = cls(code, message)
        error.etag = etag
        return error


class OwnDamage:
    """By production key, the ETag of what a write of this process has left there; event loop only.

    A worker that dies forgets it: then the object is a different one, for a person to look at.
    """

    def __init__(self) -> None:
        """Know of none."""
        self._etags: dict[str, str] = {}

    @contextmanager
    def noting(self, key: str) -> Generator[None]:
        """Remember what a write to this key leaves damaged; a write that succeeds leaves nothing."""
        try:
            yield
        except DamagedWrite as error:
            if error.etag:
                self._etags[key] = error.etag
                if len(self._etags) > MOST_KEYS:
                    del self._etags[next(iter(self._etags))]
            raise
        self._etags.pop(key, None)

    def has_left(self, key: str, existing: Response) -> bool:
        """Return whether the object that stands at a production key is what a write of ours has left there."""
        return existing.etag is not None and self._etags.get(key) == existing.etag
