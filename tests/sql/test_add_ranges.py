"""What a listing found becomes ranges: each key in one of them, none across what waits already, all or nothing."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from rowferry.db.connection import call

Session = psycopg.Connection[DictRow]
KEYS = st.text(st.sampled_from("aAzéÄ_-./ 0\x01\U0001f600\uffee"), min_size=1, max_size=4)


@pytest.fixture
def session(any_database: str) -> Iterator[Session]:
    with closing(Session.connect(any_database, row_factory=dict_row)) as connection:
        connection.execute(
            "insert into rowferry.migration (name, plan) values ('m', %s)", (Jsonb({"objects": [{"prefix": ""}]}),)
        )
        yield connection


def add_listing(session: Session, first: str = "", **more: Any) -> int:
    """Put a listing in the queue, first in it, and return its id."""
    payload = {"entries": "*", "objects": "listing", "first": first, "last": None, "size": 2, **more}
    return add_batch(session, payload)


def add_batch(session: Session, payload: dict[str, Any], status: str = "INIT") -> int:
    query = "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, run_after) "
    query += "select max(id), 'migrate', %s, 0, %s, '-infinity' from rowferry.migration returning id"
    (row,) = session.execute(query, (Jsonb(payload), status)).fetchall()
    return row["id"]


def add_waiting(session: Session, first: str, last: str | None, status: str = "ERROR") -> int:
    return add_batch(session, {"entries": "*", "objects": "range", "first": first, "last": last}, status)


def cut(session: Session, listing: int, keys: list[str], next_key: str | None = None) -> list[tuple[str, str, int]]:
    """Claim the listing, cut these keys, and return first, last and count of each new range, in the queue's order."""
    (last,) = session.execute("select max(id) as id from rowferry.batch_queue").fetchall()
    claim(session, listing)
    (counted,) = call(session, "add_ranges", listing, keys, next_key)
    rows = session.execute(
        "select * from rowferry.batch_queue where id > %s and payload ->> 'objects' = 'range' order by run_after, id",
        (last["id"],),
    ).fetchall()
    assert counted == {"batches": len(rows), "entries": sum(row["entry_count"] for row in rows)}
    return [(row["payload"]["first"], row["payload"]["last"], row["entry_count"]) for row in rows]


def claim(session: Session, listing: int) -> None:
    session.execute("update rowferry.batch_queue set run_after = '-infinity' where id = %s", (listing,))
    session.execute("update rowferry.batch_queue set run_after = 'infinity' where id <> %s", (listing,))
    (batch,) = call(session, "claim_batch", [1], ["migrate"])
    assert batch["id"] == listing


def listings(session: Session) -> list[dict[str, Any]]:
    query = "select payload from rowferry.batch_queue where payload ->> 'objects' = 'listing' order by id"
    return [row["payload"] for row in session.execute(query)]


def test_keys_are_cut_at_the_size_of_a_batch(session: Session) -> None:
    listing = add_listing(session, on_conflict="keep", read_again=["kept"])
    assert cut(session, listing, ["A", "a", "b", "c", "é"]) == [("A", "a", 2), ("b", "c", 2), ("é", "é", 1)]
    (payload,) = session.execute("select payload from rowferry.batch_queue order by id desc limit 1").fetchall()
    bounds = {"entries": "*", "objects": "range", "first": "é", "last": "é", "size": 2}
    assert payload["payload"] == bounds | {"on_conflict": "keep", "read_again": ["kept"]}


def test_the_listing_goes_on_before_its_ranges_are_copied(session: Session) -> None:
    listing = add_listing(session, max_attempts=3)
    cut(session, listing, ["a", "b", "c"], "d")
    (done, rest) = listings(session)
    assert (done["first"], done["last"]) == ("", "c")
    assert (rest["first"], rest["last"]) == ("d", None)
    session.execute("update rowferry.batch_queue set run_after = 'infinity' where id = %s", (listing,))
    (batch,) = call(session, "claim_batch", [1], ["migrate"])
    assert json.loads(batch["payload"])["objects"] == "listing"


Bounds = list[tuple[str, str | None]]
BESIDE: dict[str, tuple[Bounds, dict[str, Any], str, list[tuple[str, str, int]]]] = {
    "an empty prefix has no ranges": ([], {}, "", []),
    "no range reaches across what waits": (
        [("c", "d"), ("m", None)], {"beside_waiting": True, "size": 100}, "abcdefmxyz", [("a", "b", 2), ("e", "f", 2)]
    ),
    "only a listing that was told so looks for what waits": ([("a", "z")], {}, "b", [("b", "b", 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_what_waits_is_left_out(session: Session, name: str) -> None:
    waiting, settings, keys, ranges = BESIDE[name]
    for first, last in waiting:
        add_waiting(session, first, last)
    assert cut(session, add_listing(session, **settings), [*keys]) == ranges
    assert len(listings(session)) == 1


def test_done_batches_and_those_of_other_labels_and_queues_do_not_count(session: Session) -> None:
    other = add_waiting(session, "a", "z", "INIT")
    session.execute("update rowferry.batch_queue set queue_name = 'verify' where id = %s", (other,))
    add_batch(session, {"entries": "x", "objects": "range", "first": "a", "last": "z"})
    add_waiting(session, "a", "z", "DONE")
    assert cut(session, add_listing(session, beside_waiting=True), ["b"]) == [("b", "b", 1)]


@pytest.mark.parametrize(("limit", "taken", "left"), [(2, 2, []), (3, 3, []), (5, 3, [2]), (1, 1, [])])
def test_a_limit_ends_the_listing(session: Session, limit: int, taken: int, left: list[int]) -> None:
    ranges = cut(session, add_listing(session, limit=limit), ["a", "b", "c"], "d")
    assert sum(count for _, _, count in ranges) == taken
    assert [payload["limit"] for payload in listings(session)[1:]] == left


def test_a_range_is_no_listing_and_a_listing_must_be_claimed(session: Session) -> None:
    batch = add_waiting(session, "a", "z", "INIT")
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match="not claimed"), session.transaction():
        call(session, "add_ranges", batch, ["b"], None)
    claim(session, batch)
    with pytest.raises(errors.InvalidParameterValue, match="no listing"):
        call(session, "add_ranges", batch, ["b"], None)


@pytest.mark.versions
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sets(KEYS, max_size=14), st.sets(KEYS, max_size=8), st.integers(1, 4), st.integers(1, 5))
def test_each_key_is_in_one_batch_whatever_waits(
    session: Session, keys: set[str], bounds: set[str], size: int, at_once: int
) -> None:
    """Cut in several steps, beside batches in ERROR of any range; of an odd number of bounds, the last has no end."""
    ends = sorted(bounds, key=str.encode)
    waiting: list[tuple[str, str | None]] = list(zip(ends[::2], ends[1::2], strict=False))
    if len(ends) % 2:
        waiting.append((ends[-1], None))
    with session.transaction(force_rollback=True):
        session.execute("delete from rowferry.batch_queue")
        for first, last in waiting:
            add_waiting(session, first, last)
        listing = add_listing(session, beside_waiting=True, size=size)
        found: list[tuple[str, str, int]] = []
        rest = sorted(keys, key=str.encode)
        while True:
            part, rest = rest[:at_once], rest[at_once:]
            found += cut(session, listing, part, rest[0] if rest else None)
            session.execute("update rowferry.batch_queue set status = 'DONE' where id = %s", (listing,))
            if not rest:
                break
            query = "select id from rowferry.batch_queue where status = 'INIT' and payload ->> 'objects' = 'listing'"
            ((listing),) = [row["id"] for row in session.execute(query)]
    for key in keys:
        covers = [(first, last) for first, last, _ in found if first.encode() <= key.encode() <= last.encode()]
        waits = [(f, z) for f, z in waiting if f.encode() <= key.encode() and (z is None or key.encode() <= z.encode())]
        assert len(covers) + len(waits) == 1, (key, covers, waits)
    for first, last, count in found:
        inside = [key for key in keys if first.encode() <= key.encode() <= last.encode()]
        assert len(inside) == count <= size
        assert first in keys
        assert last in keys
