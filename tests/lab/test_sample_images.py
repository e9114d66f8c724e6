"""Simulated pictures are real PNGs, each its own, under keys of the right form, shared out to the last."""

from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import UsageError
from rowferry.plan import Entries
from rowferry.plan_file import parse_plan
from rowferry_lab.simulated.images import draw_images
from rowferry_lab.simulated.tables import list_tables, share_rows


def test_prefixes_that_allow_no_such_key_are_refused() -> None:
    entries = Entries("t", "id", "k", "avatar", "")
    with pytest.raises(UsageError, match="No simulated production key"):
        next(draw_images(entries, count(1), Random(1)))


@given(st.integers(1, 10_000), st.integers(1, 5))
def test_the_rows_are_shared_out_to_the_last(number: int, tables: int) -> None:
    entries = [{"table": f"t{n}", "id": "id", "key": "k", "from": "a/", "to": "b/"} for n in range(tables)]
    sides = {"legacy": {"bucket": "a"}, "production": {"bucket": "b"}}
    plan = parse_plan({"migration": {"name": "x"}, **sides, "entries": entries}, "of the test")
    shares = [share for _, share in share_rows(number, list_tables(plan))]
    assert sum(shares) == number
    assert max(shares) - min(shares) <= 1
