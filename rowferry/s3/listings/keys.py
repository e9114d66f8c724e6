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


class KeyPage(NamedTuple):
    """One response to a listing."""

    keys: list[str]
    is_last: bool
    token: str | None
    """What continues the listing; None where the server names nothing."""
    folders: list[str]
    """What keys begin with that were asked for by folder, up to and with the next `/`."""


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


def _walk(ask: Ask, side: SideName, prefix: str, first: str, most: int) -> Iterator[tuple[int, str]]:
    """Yield the keys from `first` on, each with the number of its page; ask for about `most` of them."""
    after, token, empty, number, found = "", None, 0, 0, 0
    if first != prefix:  # what follows `first` is listed after it, and does not contain it
        page = read_page(ask(list_keys(side, first, max_keys=1)))
        if first in page.keys and first.startswith(prefix):
            yield 1, first
        after = first
    while True:
        wanted = max(1, min(PAGE_KEYS, most - found))
        page = read_page(ask(list_keys(side, prefix, after=after, token=token, max_keys=wanted)))
        number += 1
        for key in page.keys:
            _refuse_unusable(key, prefix, after)
            after = key
            found += 1
            yield number, key
        if page.is_last:
            return
        empty = 0 if page.keys else empty + 1
        if empty and (page.token in {None, token} or empty > MAX_EMPTY_PAGES):
            raise ListingUnusable("EndlessListing", f"the listing goes on behind {after!r} without another key")
        token = None if page.keys else page.token


def _refuse_unusable(key: str, prefix: str, after: str) -> None:
    """Raise ListingUnusable for a key that is out of order, or cannot be one."""
    if not key.startswith(prefix):
        raise ListingUnusable("ForeignKeys", f"the listing of {prefix!r} names {key!r}")
    if key <= after:
        words = f"the server lists {key!r} after {after!r}, so not in the order of their bytes"
        raise ListingUnusable("UnorderedListing", f"{words}, and no range can be cut from its listing")
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
    keys = _read_texts(root, "Contents", "Key", encoded=encoded)
    folders = _read_texts(root, "CommonPrefixes", "Prefix", encoded=encoded)
    return KeyPage(keys, told.get("IsTruncated") != "true", told.get("NextContinuationToken") or None, folders)


def _read_texts(root: Element, within: str, name: str, *, encoded: bool) -> list[str]:
    """Return the texts of one element of each of some others."""
    inner = (child for element in root if name_of(element) == within for child in element)
    texts = [child.text or "" for child in inner if name_of(child) == name]
    try:
        return [unquote_plus(text, errors="strict") for text in texts] if encoded else texts
    except UnicodeDecodeError:
        raise ListingUnusable("ForeignKeys", "the server lists a key that is not UTF-8") from None
