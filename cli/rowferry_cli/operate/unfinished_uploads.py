"""Lists the multipart uploads that were neither completed nor aborted. No I/O."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote_plus

from rowferry.errors import ListingUnusable, ServerFault
from rowferry.plan import SideName
from rowferry.s3.listings.keys import Ask
from rowferry.s3.operations import list_multipart_uploads
from rowferry.s3.responses import Response, name_of, parse_xml, read_result


class Upload(NamedTuple):
    """A multipart upload that was neither completed nor aborted."""

    key: str
    id: str
    begun_at: datetime


def list_uploads(ask: Ask, side: SideName, prefix: str = "") -> Iterator[Upload]:
    """Yield the unfinished uploads to keys that begin with `prefix`, in the server's order.

    Raises ServerFault when a response cannot be read, ListingUnusable when the listing has no end, and the ObjectError
    of a request that fails.
    """
    after: tuple[str, str] | None = None
    while True:
        response = ask(list_multipart_uploads(side, prefix, after=after))
        told = read_result(response.body, "IsTruncated")
        if not told:
            raise ServerFault("UnreadableResponse", "the server's list of uploads is not S3's XML")
        encoded = told.get("EncodingType") == "url"
        yield from _read_uploads(response, encoded=encoded)
        if told["IsTruncated"] != "true":
            return
        last, after = after, (_decode(told.get("NextKeyMarker", ""), encoded), told.get("NextUploadIdMarker", ""))
        if after in {last, ("", "")}:
            raise ListingUnusable("EndlessListing", "the list of uploads goes on without naming where")


def _read_uploads(response: Response, *, encoded: bool) -> Iterator[Upload]:
    root = parse_xml(response.body)
    for element in () if root is None else root:
        if name_of(element) == "Upload":
            told = {name_of(child): child.text or "" for child in element}
            yield Upload(_decode(told.get("Key", ""), encoded), told.get("UploadId", ""), _read_time(told))


def _read_time(told: dict[str, str]) -> datetime:
    try:
        begun = datetime.fromisoformat(told.get("Initiated", ""))
    except ValueError:
        raise ServerFault("UnreadableResponse", "the server does not say when an upload was begun") from None
    return begun if begun.tzinfo else begun.replace(tzinfo=UTC)


def _decode(text: str, encoded: bool) -> str:
    return unquote_plus(text) if encoded else text
