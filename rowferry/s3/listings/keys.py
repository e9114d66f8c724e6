"""Lists the keys of a range in the order of their bytes, and refuses a listing that has another or none. No I/O."""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus
from xml.etree.ElementTree import Element

from rowferry.errors import ListingUnusable, ServerFault
from rowferry.keys import MAX_KEY_BYTES
from rowferry.plan import SideName
from rowferry.s3.operations import Request, list_keys
from rowferry.s3.responses import Response, name_of, parse_xml

PAGE_KEYS = 1000
"""The most keys that one request lists. Source: Amazon S3 API Reference, "ListObjectsV2"."""
MAX_EMPTY_PAGES = 10
"""Pages in a row without a key that are taken: servers that skip deleted keys may send some."""

BROKEN = (
    "the server's listing is no well-formed XML: a key in it has control characters or is not UTF-8, and the server "
    "does not encode it as it was asked to"
)

Ask = Callable[[Request], Response]
"""Sends a request, with retries, and returns the response; raises ObjectError."""


class ListedKeys(NamedTuple):
    """The keys of a range, as many as were asked for."""

    keys: list[str]
    next: str | None
    """The key after them, where the range goes on; None: it has come to its end."""


class ListedObject(NamedTuple):
    """What a listing tells of an object."""

    key: str
    size: str
    etag: str
    """Without quotes; empty where the server does not tell."""
    modified: str
    """When it was written, in the server's own words."""


class KeyPage(NamedTuple):
    """One response to a listing."""

    objects: list[ListedObject]
    is_last: bool
    token: str | None
    """What continues the listing; None where the server names nothing."""
    folders: list[str]
    """What keys begin with that were asked for by folder, up to and with the next `/`."""

    @property
    def keys(self) -> list[str]:
        """The keys of the objects."""
        return [listed.key for listed in self.objects]


def list_range(
    ask: Ask,
    side: SideName,
    prefix: str,
    first: str,
    last: str | None,
    *,
    most_keys: int,
    is_enough: Callable[[int], bool],
) -> ListedKeys:
    """Return a side's keys that begin with `prefix`, from `first` to `last`, both included; `last` None: to the end.

    At most `most_keys` of them. `is_enough` is told the number of a page, from 1: where it returns true, the first key
    of that page is `next`. Python compares text by code points, which is the order of its UTF-8 bytes. Raises
    ListingUnusable when the server's order is another or has no end, ServerFault when a response cannot be read, and
    the ObjectError of a request that fails.
    """
    keys: list[str] = []
    for number, key in _walk(ask, side, prefix, first, most_keys + 1):
        if last is not None and key > last:
            return ListedKeys(keys, None)
        if len(keys) == most_keys or (keys and is_enough(number)):
            return ListedKeys(keys, key)
        keys.append(key)
    return ListedKeys(keys, None)


def list_pages(ask: Ask, side: SideName) -> Iterator[list[str]]:
    """Yield all keys of a side's bucket in any order, those of one response at a time.

    Raises ListingUnusable when the listing has no end, and otherwise as `list_range`.
    """
    after, token, empty = "", None, 0
    while True:
        page = read_page(ask(list_keys(side, "", after=after, token=token)))
        yield page.keys
        if page.is_last:
            return
        empty = 0 if page.keys else empty + 1
        if (page.token is None and not page.keys) or page.token == token is not None or empty > MAX_EMPTY_PAGES:
            raise ListingUnusable("EndlessListing", f"the listing goes on behind {after!r} without another key")
        after, token = page.keys[-1] if page.keys else after, page.token


class Walk:
    """How far a listing has come that is in the order of bytes: its next request, and what a response adds."""

    def __init__(self, side: SideName, prefix: str, after: str = "") -> None:
        """`after`: the key behind which the listing begins."""
        self._side: SideName = side
        self._prefix = prefix
        self._after = after
        self._token: str | None = None
        self._empty = 0
        self.is_over = False

    def next_request(self, max_keys: int = PAGE_KEYS) -> Request:
        """Return the request for the next keys."""
        return list_keys(self._side, self._prefix, after=self._after, token=self._token, max_keys=max_keys)

    def take(self, response: Response) -> KeyPage:
        """Return what a response lists.

        Raises ListingUnusable where its order is another, or it has no end, and otherwise as `read_page`.
        """
        page = read_page(response)
        for key in page.keys:
            _refuse_unusable(key, self._prefix, self._after)
            self._after = key
        self.is_over = page.is_last
        self._empty = 0 if page.keys else self._empty + 1
        if self._empty and not page.is_last and (page.token in {None, self._token} or self._empty > MAX_EMPTY_PAGES):
            raise ListingUnusable("EndlessListing", f"the listing goes on behind {self._after!r} without another key")
        self._token = None if page.keys else page.token
        return page


def _walk(ask: Ask, side: SideName, prefix: str, first: str, most: int) -> Iterator[tuple[int, str]]:
    """Yield the keys from `first` on, each with the number of its page; ask for about `most` of them."""
    walk, number, found = Walk(side, prefix, "" if first == prefix else first), 0, 0
    if first != prefix:  # what follows `first` is listed after it, and does not contain it
        page = read_page(ask(list_keys(side, first, max_keys=1)))
        if first in page.keys and first.startswith(prefix):
            yield 1, first
    while not walk.is_over:
        page = walk.take(ask(walk.next_request(max(1, min(PAGE_KEYS, most - found)))))
        number += 1
        found += len(page.keys)
        yield from ((number, key) for key in page.keys)


def _refuse_unusable(key: str, prefix: str, after: str) -> None:
    """Raise ListingUnusable for a key that is out of order, or cannot be one."""
    if not key.startswith(prefix):
        raise ListingUnusable("ForeignKeys", f"the listing of {prefix!r} names {key!r}")
    if key <= after:
        words = (
            f"the server lists {key!r} after {after!r}: not in the order of their bytes, or it knows ListObjects only"
        )
        raise ListingUnusable("UnorderedListing", f"{words} and ignores where a page of ListObjectsV2 begins")
    if "\0" in key or len(key.encode()) > MAX_KEY_BYTES:
        words = f"the server lists {key[:100]!r}, which has a NUL or is longer than {MAX_KEY_BYTES} bytes"
        raise ListingUnusable("ForeignKeys", words)


def read_page(response: Response) -> KeyPage:
    """Return what one response lists. Raises ServerFault when it is no listing, ListingUnusable for one that is broken.

    Where the server says that keys are percent-encoded, a plus is a space (as AWS writes it).
    """
    root = parse_xml(response.body)
    if root is None and response.body.rstrip().endswith(b"</ListBucketResult>"):
        raise ListingUnusable("BrokenListing", BROKEN)
    told = {} if root is None else {name_of(child): child.text or "" for child in root}
    if root is None or (name_of(root) != "ListBucketResult" and not {"Contents", "IsTruncated"} <= told.keys()):
        raise ServerFault("UnreadableResponse", "the server's listing is not S3's XML")
    encoded = told.get("EncodingType") == "url"
    objects, folders = list(_read_objects(root, encoded=encoded)), list(_read_folders(root, encoded=encoded))
    return KeyPage(objects, told.get("IsTruncated") != "true", told.get("NextContinuationToken") or None, folders)


def _read_objects(root: Element, *, encoded: bool) -> Iterator[ListedObject]:
    for element in root:
        if name_of(element) == "Contents":
            told = {name_of(child): child.text or "" for child in element}
            if "Key" in told:
                key, etag = _decode(told["Key"], encoded=encoded), told.get("ETag", "").strip('"')
                yield ListedObject(key, told.get("Size", ""), etag, told.get("LastModified", ""))


def _read_folders(root: Element, *, encoded: bool) -> Iterator[str]:
    children = (child for element in root if name_of(element) == "CommonPrefixes" for child in element)
    yield from (_decode(child.text or "", encoded=encoded) for child in children if name_of(child) == "Prefix")


def _decode(text: str, *, encoded: bool) -> str:
    try:
        return unquote_plus(text, errors="strict") if encoded else text
    except UnicodeDecodeError:
        raise ListingUnusable("ForeignKeys", "the server lists a key that is not UTF-8") from None
