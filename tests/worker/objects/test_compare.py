"""Two objects are the same by what servers tell of them, by checksums where ETags say nothing, else by their bytes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rowferry.errors import PreconditionFailed, ServerFault
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.objects.compare import Pair, are_same
from rowferry_worker.objects.own_copies import KnownCopies
from rowferry_worker.objects.requests import ObjectRequests

WHOLE = {"x-amz-checksum-type": "FULL_OBJECT"}
OF_PARTS = {"x-amz-checksum-type": "COMPOSITE"}
KINDS = ("sha256", "crc64nvme", "sha1", "crc32c", "crc32")
"""The checksums that a server may tell, the strongest first."""

Told = Mapping[str, str]
"""The headers that a server adds where it is asked for checksums."""


def checksum(kind: str, value: str = "AAAA") -> dict[str, str]:
    return {f"x-amz-checksum-{kind}": value}


@dataclass
class Sides:
    """An object at each side, whose ETag is no digest, and what its server tells of checksums."""

    told: tuple[Told, Told]
    bodies: tuple[bytes, bytes] = (b"abc", b"abc")
    etags: dict[SideName, str] = field(default_factory=lambda: {"legacy": "opaque-1", "production": "opaque-2"})
    asked: list[str] = field(default_factory=list[str])

    def describe(self, side: SideName) -> dict[str, str]:
        body = self.bodies[side == "production"]
        return {"etag": f'"{self.etags[side]}"', "content-length": str(len(body)), "server": "AmazonS3"}

    async def send(self, request: Request) -> Response:
        """Respond to a HEAD, or to a GET of all bytes, as S3 does."""
        headers, found = dict(request.headers), self.describe(request.side)
        self.asked.append(f"{request.operation} {request.side}")
        if headers.get("If-Match") != found["etag"]:
            raise PreconditionFailed("PreconditionFailed", "as told")
        if request.operation == "HeadObject":
            assert headers["x-amz-checksum-mode"] == "ENABLED"
            return Response(200, {**found, **self.told[request.side == "production"]})
        return Response(200, found, self.bodies[request.side == "production"])

    def are_same(self, *, deep: bool = False, rewritten: SideName | None = None) -> bool:
        """Compare what a look has found; `rewritten`: the side whose object has another ETag since then."""
        legacy, production = (Response(200, self.describe(side)) for side in ("legacy", "production"))
        if rewritten is not None:
            self.etags[rewritten] = "opaque-3"
        return asyncio.run(
            are_same(ObjectRequests(self.send), Pair("old", legacy, "new", production), KnownCopies(), deep=deep)
        )


@pytest.mark.parametrize("value", ["AAAA", "BBBB"])
@pytest.mark.parametrize("kind", KINDS)
def test_checksums_of_whole_objects_decide_without_reading_them(kind: str, value: str) -> None:
    sides = Sides((WHOLE | checksum(kind), WHOLE | checksum(kind, value)))
    assert sides.are_same() is (value == "AAAA")
    assert sides.asked == ["HeadObject legacy", "HeadObject production"]


@pytest.mark.parametrize("stronger", range(len(KINDS) - 1))
def test_of_several_checksums_the_strongest_that_both_servers_tell_decides(stronger: int) -> None:
    strong, weak = KINDS[stronger], KINDS[stronger + 1]
    both = WHOLE | checksum(strong) | checksum(weak)
    assert Sides((both, WHOLE | checksum(strong) | checksum(weak, "BBBB"))).are_same()
    assert not Sides((both, WHOLE | checksum(strong, "BBBB") | checksum(weak))).are_same()
    assert not Sides((both, WHOLE | checksum(weak, "BBBB"))).are_same(), "the only one that both tell"
    assert not Sides((WHOLE | checksum(weak, "BBBB"), both)).are_same()


UNCLEAR: dict[str, tuple[Told, Told]] = {
    "of parts at the legacy side": (OF_PARTS | checksum("sha256"), WHOLE | checksum("sha256", "BBBB")),
    "of parts at the production side": (WHOLE | checksum("sha256"), OF_PARTS | checksum("sha256", "BBBB")),
    "of a kind that is not said": (checksum("sha256"), checksum("sha256", "BBBB")),
    "of two kinds": (WHOLE | checksum("crc32"), WHOLE | checksum("sha256", "BBBB")),
    "of an unknown kind": (WHOLE | checksum("md4"), WHOLE | checksum("md4", "BBBB")),
    "none": ({}, {}),
}


@pytest.mark.parametrize("bodies", [(b"abc", b"abc"), (b"abc", b"abd")], ids=["equal", "different"])
@pytest.mark.parametrize("checksums", UNCLEAR)
def test_where_no_checksum_of_the_whole_is_told_by_both_the_bytes_decide(
    checksums: str, bodies: tuple[bytes, bytes]
) -> None:
    sides = Sides(UNCLEAR[checksums], bodies)
    assert sides.are_same() == (bodies[0] == bodies[1])
    assert sides.asked[-2:] == ["GetObject legacy", "GetObject production"]


def test_where_the_legacy_server_tells_no_checksum_the_other_is_not_asked() -> None:
    sides = Sides(({}, WHOLE | checksum("sha256")))
    assert sides.are_same()
    assert "HeadObject production" not in sides.asked


def test_a_deep_comparison_believes_no_checksum() -> None:
    sides = Sides((WHOLE | checksum("sha256"), WHOLE | checksum("sha256")), (b"abc", b"abd"))
    assert not sides.are_same(deep=True)
    assert sides.asked == ["GetObject legacy", "GetObject production"]


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_checksum_of_an_object_that_was_rewritten_meanwhile_is_not_taken(side: SideName) -> None:
    sides = Sides((WHOLE | checksum("sha256"), WHOLE | checksum("sha256")))
    with pytest.raises(ServerFault, match=f"the {side} object .* was written while it was read"):
        sides.are_same(rewritten=side)


@pytest.mark.parametrize("deep", [False, True])
def test_objects_of_different_sizes_differ_without_a_request(*, deep: bool) -> None:
    sides = Sides((WHOLE | checksum("sha256"), WHOLE | checksum("sha256")), (b"abc", b"abcd"))
    assert not sides.are_same(deep=deep)
    assert sides.asked == []
