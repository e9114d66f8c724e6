"""Counting walks a listing to its end, and says at once when it is given up."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from urllib.parse import parse_qs

import pytest

from rowferry.errors import ListingUnusable
from rowferry.plan import SideName
from rowferry.s3.listings.keys import list_pages
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_cli.status.counts import count_objects_of
from support.entries.migration import Migration
from support.s3.listing_page import page

Serve = Callable[[str, str], Response]
"""Returns the page behind a token, or behind a key."""
LEGACY: SideName = "legacy"
NUMBERS = count()


def read_all(serve: Serve) -> list[list[str]]:
    def ask(request: Request) -> Response:
        query = parse_qs(request.target[1:])
        return serve(query.get("continuation-token", [""])[0], query.get("start-after", [""])[0])

    return list(list_pages(ask, LEGACY))


@pytest.mark.fast
def test_a_listing_goes_on_by_its_token_or_behind_its_last_key() -> None:
    pages = {"": page(["a", "b"], more=True, token="2"), "2": page([], more=True, token="3"), "3": page(["c"])}
    assert read_all(lambda token, _after: pages[token]) == [["a", "b"], [], ["c"]]
    without = {"": page(["a", "b"], more=True), "b": page(["c"])}
    assert read_all(lambda _token, after: without[after]) == [["a", "b"], ["c"]]


@pytest.mark.fast
@pytest.mark.parametrize("kind", ["same token", "no token", "new tokens"])
def test_a_listing_without_an_end_is_refused(kind: str) -> None:
    def serve(_token: str, _after: str) -> Response:
        tokens = {"same token": "same", "no token": "", "new tokens": str(next(NUMBERS))}
        return page(["a"] if kind == "same token" else [], more=True, token=tokens[kind])

    with pytest.raises(ListingUnusable, match="goes on behind"):
        read_all(serve)


def test_a_count_that_is_given_up_says_so_at_once(migration: Migration) -> None:
    migration.fill(3)
    heard = list[str]()
    assert not count_objects_of(migration.read_plan(), heard.append, timedelta(seconds=-1))["legacy"].is_complete
    assert "the legacy bucket has at least 3 objects: the count is given up" in heard
