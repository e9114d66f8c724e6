"""The unfinished uploads of a bucket are listed page by page, or the listing is refused."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest

from rowferry.errors import ListingUnusable, ObjectError, ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_cli.operate.unfinished_uploads import Upload, list_uploads

pytestmark = pytest.mark.fast
BEGUN = "2026-11-27T08:00:00.000Z"


def page(*uploads: tuple[str, str], more: str = "", encoding: str = "", begun: str = BEGUN) -> Response:
    listed = "".join(
        f"<Upload><Key>{key}</Key><UploadId>{number}</UploadId><Initiated>{begun}</Initiated></Upload>"
        for key, number in uploads
    )
    named = f"<EncodingType>{encoding}</EncodingType>" if encoding else ""
    truncated = str(bool(more)).lower()
    body = f"<ListMultipartUploadsResult><IsTruncated>{truncated}</IsTruncated>{named}{more}{listed}"
    return Response(200, {}, f"{body}</ListMultipartUploadsResult>".encode())


def following(key: str, number: str) -> str:
    return f"<NextKeyMarker>{key}</NextKeyMarker><NextUploadIdMarker>{number}</NextUploadIdMarker>"


def read_all(pages: Sequence[Response]) -> tuple[list[Upload], list[dict[str, list[str]]]]:
    asked, left = list[dict[str, list[str]]](), list(pages)

    def ask(request: Request) -> Response:
        asked.append(parse_qs(request.target[1:], keep_blank_values=True))
        return left.pop(0)

    return list(list_uploads(ask, "production", "a b/")), asked


def test_a_long_list_goes_on_behind_the_upload_that_the_server_names() -> None:
    pages = page(("a%20b/1", "x"), more=following("a%20b/1", "x"), encoding="url"), page(("a b/+2", "y"))
    found, (first, second) = read_all(pages)
    assert [(each.key, each.id) for each in found] == [("a b/1", "x"), ("a b/+2", "y")]
    assert found[0].begun_at == datetime(2026, 11, 27, 8, tzinfo=UTC)
    assert (first["prefix"], first["uploads"]) == (["a b/"], [""])
    assert (second["key-marker"], second["upload-id-marker"]) == (["a b/1"], ["x"])


@pytest.mark.parametrize(
    ("pages", "error"),
    [
        ([page(more="<NextKeyMarker/>")], ListingUnusable),
        ([page(more=following("k", "x"))] * 2, ListingUnusable),
        ([Response(200, {}, b"<html>welcome</html>")], ServerFault),
        ([page(("k", "x"), begun="yesterday")], ServerFault),
    ],
    ids=["no marker", "the same marker", "no list", "no time"],
)
def test_a_list_without_an_end_or_a_meaning_is_refused(pages: list[Response], error: type[ObjectError]) -> None:
    with pytest.raises(error):
        read_all(pages)
