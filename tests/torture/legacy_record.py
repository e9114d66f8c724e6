"""What the legacy bucket held before anything began, object by object."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from rowferry_lab.servers.s3_servers import S3Server
from support.s3.objects import ObjectSide
from torture.object_reader import Found, ObjectReader

READERS = 8
LEFT_BY_SERVER = ".sgwtmp."
"""In the name of a temporary file that versitygw leaves behind where it is killed while it stores an object."""
TRAVELLING = ("content-type", "content-encoding", "content-disposition", "cache-control", "x-amz-meta-")


class LegacyRecord:
    """What the legacy bucket held: bytes, properties and time of the last write of each object."""

    def __init__(self, server: S3Server, side: ObjectSide) -> None:
        self._server, self._side = server, side
        self._taken: dict[str, Found | None] = {}

    def take(self, keys: Iterable[str]) -> None:
        """Note these objects as they are now."""
        self._taken |= self._read(list(keys))

    def differences(self, written: Collection[str] = ()) -> Iterator[str]:
        """Yield what is not as it was; `written` are keys that the application itself has written."""
        there = {key for key in self._side.listing() if LEFT_BY_SERVER not in key}
        for key in (there ^ set(self._taken)) - set(written):
            yield f"legacy object {key!r} {'appeared' if key in there else 'is gone'}"
        kept = [key for key in self._taken if key not in written]
        for key, found in self._read(kept).items():
            if found != self._taken[key]:
                yield f"legacy object {key!r} was written"

    def foreign_properties(self, copies: Mapping[str, str], production: ObjectSide) -> Iterator[str]:
        """Yield the production objects whose content headers or user metadata are not those of their legacy object.

        `copies` leads from legacy keys to production keys; keys that were never taken are passed over.
        """
        known = {old: new for old, new in copies.items() if self._taken.get(old)}
        found = read_many(self._server, production.bucket, list(known.values()))
        for old, new in known.items():
            legacy, copy = self._taken[old], found[new]
            if legacy and copy and travelling(legacy) != travelling(copy):
                yield f"production object {new!r} has other properties than its legacy object"

    def _read(self, keys: list[str]) -> dict[str, Found | None]:
        return read_many(self._server, self._side.bucket, keys)


def travelling(found: Found) -> dict[str, str]:
    """Return the properties that a copy has to have as well."""
    return {name: value for name, value in found.properties.items() if name.startswith(TRAVELLING)}


def read_many(server: S3Server, bucket: str, keys: list[str]) -> dict[str, Found | None]:
    """Return objects by their keys; None for those that are not there."""
    with closing(ObjectReader(server)) as reader, ThreadPoolExecutor(READERS) as pool:
        return dict(zip(keys, pool.map(lambda key: reader.read(bucket, key), keys), strict=True))
