"""A listing yields each key of its range once, in the order of their bytes, or is refused with a reason."""

from collections.abc import Sequence
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import ListingUnusable, ServerFault
from rowferry.s3.listings.keys import MAX_EMPTY_PAGES, PAGE_KEYS, Ask, ListedKeys, ListedObject, list_range, read_page
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from support.s3.listing_page import page

pytestmark = pytest.mark.fast

Query = dict[str, str]
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


def query_of(request: Request) -> Query:
    assert (request.side, request.method) == ("legacy", "GET")
    return {name: values[0] for name, values in parse_qs(request.target[1:], keep_blank_values=True).items()}


def serve(keys: Sequence[str], *, page_keys: int = PAGE_KEYS, encoded: bool = True) -> Ask:
    """A bucket that lists as S3 does."""
    ordered = sorted(keys, key=str.encode)

    def ask(request: Request) -> Response:
        query = query_of(request)
        most = min(int(query["max-keys"]), page_keys)
        after = query.get("start-after", "").encode()
        found = [key for key in ordered if key.startswith(query["prefix"]) and key.encode() > after]
        return page(found[:most], more=len(found) > most, token="next" if len(found) > most else "", encoded=encoded)

    return ask


def answers(*pages: Response) -> Ask:
    """A server that sends these pages, and the last of them for ever."""
    sent: list[Request] = []

    def ask(request: Request) -> Response:
        sent.append(request)
        assert len(sent) < 1_000, "it asks for ever"
        return pages[min(len(sent), len(pages)) - 1]

    return ask


def take(ask: Ask, first: str = "", last: str | None = None, *, prefix: str = "", most: int = 100) -> ListedKeys:
    return list_range(ask, "legacy", prefix, first, last, most_keys=most, is_enough=lambda page: page > 50)


@given(st.sets(KEYS, max_size=30), KEYS, KEYS, st.integers(1, 40), st.integers(1, 5))
def test_every_key_of_the_range_is_listed_once_in_the_order_of_bytes(
    keys: set[str], first: str, last: str, most: int, page_keys: int
) -> None:
    expected = sorted((key for key in keys if first.encode() <= key.encode() <= last.encode()), key=str.encode)
    listed = list_range(
        serve([*keys], page_keys=page_keys), "legacy", "", first, last, most_keys=most, is_enough=lambda _: False
    )
    assert listed.keys == expected[:most]
    assert listed.next == (expected[most] if len(expected) > most else None)


@given(st.sets(KEYS, min_size=2, max_size=40), st.integers(1, 7), st.integers(1, 4), st.integers(1, 3))
def test_a_listing_that_goes_on_at_the_next_key_leaves_out_none(
    keys: set[str], most: int, page_keys: int, most_pages: int
) -> None:
    found: list[str] = []
    first: str | None = ""
    bucket = serve([*keys], page_keys=page_keys)
    while first is not None:
        part = list_range(bucket, "legacy", "", first, None, most_keys=most, is_enough=lambda page: page > most_pages)
        assert part.next is None or part.keys
        found += part.keys
        first = part.next
    assert found == sorted(keys, key=str.encode)


def test_a_range_begins_with_its_first_key_if_that_is_there_and_ends_with_the_prefix() -> None:
    keys = ["a/1", "variants", "variants/", "variants/ä", "variants0"]
    assert take(serve(keys), "variants/", prefix="variants/") == (["variants/", "variants/ä"], None)
    assert take(serve(["a", "b", "b1", "c"]), "b", "b1").keys == ["b", "b1"]
    assert take(serve(["a", "b1", "c"]), "b", "b1").keys == ["b1"]


def test_a_key_comes_as_it_is_also_from_a_server_that_encodes_none() -> None:
    for key in ("\x01", "a\tb\nc\rd", "￾", "\x7f\x80", "a+b c%41", "<&>'\"", "é", "e\u0301", "//", "😀"):
        assert take(serve([key])).keys == [key]
    keys = ["%41", "<&>", "a b", "a+b", "é"]
    assert take(serve(keys, encoded=False)).keys == keys


def test_a_range_asks_for_no_more_keys_than_it_takes_and_for_its_first_key_alone() -> None:
    asked: list[Query] = []

    def noting(bucket: Ask) -> Ask:
        def ask(request: Request) -> Response:
            asked.append(query_of(request))
            return bucket(request)

        return ask

    assert len(take(noting(serve([f"{number:04}" for number in range(3000)])), most=1500).keys) == 1500
    assert [query["max-keys"] for query in asked] == ["1000", "501"]
    assert asked[1]["start-after"] == "0999"
    asked.clear()
    assert take(noting(serve(["a", "b", "b1", "b2"])), "b", most=10).keys == ["b", "b1", "b2"]
    assert [(query["prefix"], query["max-keys"]) for query in asked] == [("b", "1"), ("", "11")]


TOKENS = [page([], more=True, token=f"t{number}") for number in range(999)]
NO_UTF_8 = Response(200, body=page(["a"]).body.replace(b"<Key>a", b"<Key>%FF"))
BYTES = ["\U0001f600", "\uffee"]
"""Which stand in this order in UTF-16."""
HOSTILE: dict[str, tuple[str, Sequence[Response], str]] = {
    "unordered": ("", [page(["b", "a"])], "UnorderedListing: .*lists 'a' after 'b'"),
    "repeating": ("", [page(["a", "a"])], "UnorderedListing: .*lists 'a' after 'a'"),
    "the same page again": (
        "", [page(["a", "b"], more=True, token="t")], "UnorderedListing: .*lists 'a' after 'b'",
    ),
    "by another order than bytes": ("", [page(BYTES)], "UnorderedListing: .*not in the order of their bytes"),
    "folders first": ("", [page(["a/b", "a b"])], "UnorderedListing: .*lists 'a b' after 'a/b'"),
    "a token for ever": ("", TOKENS, "without another key"),
    "the same token again": ("", [page([], more=True, token="t")], "EndlessListing: .*without another key"),
    "more without a key or a token": ("", [page([], more=True)], "EndlessListing: .*without another key"),
    "another prefix": ("a", [page(["b"])], "ForeignKeys: .*names 'b'"),
    "a NUL": ("a", [page(["a\0"])], "ForeignKeys: .*has a NUL"),
    "a long key": ("a", [page(["a" * 1025])], "ForeignKeys: .*longer than 1024 bytes"),
    "an empty key": ("a", [page([""])], "ForeignKeys: .*names ''"),
    "no UTF-8": ("a", [NO_UTF_8], "ForeignKeys: .*not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_listing_is_refused_with_a_reason(name: str) -> None:
    prefix, pages, reason = HOSTILE[name]
    with pytest.raises(ListingUnusable, match=reason) as refused:
        take(answers(*pages), prefix, prefix=prefix)
    assert not refused.value.retryable


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>please log in</html>", b"<ListBucketResult><Contents><Key>a</Key>", b"<Error/>", b"\xff\xfe",
     b'<!DOCTYPE x [<!ENTITY a "b">]><ListBucketResult/>'],
)  # fmt: skip
def test_a_response_that_is_no_listing_is_the_servers_fault(body: bytes) -> None:
    with pytest.raises(ServerFault, match="not S3's XML"):
        read_page(Response(200, body=body))


@pytest.mark.parametrize("key", [b"a\x01b", b"a\xffb", b"a&b"])
def test_a_listing_with_a_key_that_breaks_its_xml_says_so(key: bytes) -> None:
    body = page(["a"]).body.replace(b"<Key>a", b"<Key>" + key)
    with pytest.raises(ListingUnusable, match=r"BrokenListing: .* control characters or is not UTF-8"):
        read_page(Response(200, body=body))


def test_a_page_is_known_by_what_it_holds_whatever_stands_beside_the_keys() -> None:
    body = page(["a"]).body.replace(b"ListBucketResult", b"ListBucketV2Result")
    assert read_page(Response(200, body=body)).keys == ["a"]
    body = (
        b"<ListBucketResult><Name>b</Name><Prefix>a</Prefix><KeyCount>1</KeyCount>"
        b'<Contents><Owner><ID>a</ID></Owner><Key>a+b%2B</Key><ETag>"x"</ETag></Contents>'
        b"<CommonPrefixes><Prefix>no/</Prefix></CommonPrefixes></ListBucketResult>"
    )
    listed = ListedObject("a+b%2B", "", "x", "")
    assert read_page(Response(200, body=body)) == ([listed], True, None, ["no/"])


def test_a_few_pages_without_a_key_are_taken_and_no_more_pages_than_are_enough() -> None:
    empty = [page([], more=True, token=f"t{number}") for number in range(MAX_EMPTY_PAGES)]
    assert take(answers(*empty, page(["a"]))).keys == ["a"]
    keys = [f"{number:04}" for number in range(200)]
    assert take(serve(keys, page_keys=1), most=1000) == (keys[:50], keys[50])


@given(st.binary(max_size=200))
def test_no_body_makes_the_reader_fall_over(body: bytes) -> None:
    try:
        read_page(Response(200, body=b"<ListBucketResult>" + body + b"</ListBucketResult>"))
    except (ServerFault, ListingUnusable):
        return
