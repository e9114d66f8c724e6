"""Items of a payload: a batch reads all of them, and after a failed attempt only those that it left."""

from typing import Any

from rowferry.batch import Entry
from rowferry_worker.batch.sources import read_items

ITEMS = [{"id": "1", "key": "a.png"}, {"id": "2"}, {"id": "3", "key": "c.png"}]


def read(**payload: Any) -> list[Entry]:
    return read_items(payload)


def test_an_item_is_its_own_value_and_is_known_by_its_key_or_its_id() -> None:
    first, second, third = ITEMS
    assert read(items=ITEMS, unsettled=None) == [
        Entry("1", "a.png", values=(first,)),
        Entry("2", "2", values=(second,)),
        Entry("3", "c.png", values=(third,)),
    ]


def test_only_what_the_last_attempt_left_is_read_again() -> None:
    assert [entry.id for entry in read(items=ITEMS, unsettled=["3", "2"])] == ["2", "3"]
