"""Items of a payload: a batch reads all of them, and after a failed attempt only those that it left."""

from types import SimpleNamespace
from typing import Any, cast

from rowferry.batch import Entry
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sources.items import ItemsSource

ITEMS = [{"id": "1", "key": "a.png"}, {"id": "2"}, {"id": "3", "key": "c.png"}]


def read(**payload: Any) -> list[Entry]:
    return ItemsSource().read(cast("BatchContext", SimpleNamespace(batch=SimpleNamespace(payload=payload))))


def test_an_item_is_its_own_value_and_is_known_by_its_key_or_its_id() -> None:
    first, second, third = ITEMS
    assert read(items=ITEMS, unsettled=None) == [
        Entry("1", "a.png", values=(first,)),
        Entry("2", "2", values=(second,)),
        Entry("3", "c.png", values=(third,)),
    ]


def test_only_what_the_last_attempt_left_is_read_again() -> None:
    assert [entry.id for entry in read(items=ITEMS, unsettled=["3", "2"])] == ["2", "3"]
