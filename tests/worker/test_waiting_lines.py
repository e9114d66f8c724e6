"""Which line a claim asks for first: by priority, then by weight, each with its share of any claims in a row."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from rowferry_worker.waiting_lines import WaitingLines

ROW: dict[str, Any] = {
    "migration_id": 1,
    "migration": "m",
    "priority": 0,
    "weight": 1.0,
    "is_due": True,
    "since": "s",
    "since_id": 0,
}


def know(*rows: dict[str, Any], walked: int = 0) -> WaitingLines:
    """Return what a look has found: lines that are as ROW but for what is said here."""
    lines = WaitingLines()
    lines.note_look([{**ROW, "queue_name": "q", "walked": walked, **row} for row in rows])
    return lines


def first(lines: WaitingLines) -> str:
    return lines.choose(None, ())[0][0].queue_name


@pytest.mark.parametrize("weights", [(5, 1, 0.5), (1, 1, 1), (100, 1, 1)])
def test_each_line_has_its_share_of_a_thousand_claims_to_a_tenth_or_two(weights: tuple[float, ...]) -> None:
    lines = know(*({"queue_name": str(number), "weight": weight} for number, weight in enumerate(weights)))
    found = Counter(first(lines) for _ in range(1000))
    for number, weight in enumerate(weights):
        assert found[str(number)] == pytest.approx(1000 * weight / sum(weights), rel=0.1, abs=2)


def test_each_line_has_its_share_of_any_twenty_claims_and_processes_do_not_all_begin_with_one() -> None:
    lines = know({"queue_name": "a", "weight": 3}, {"queue_name": "b"})
    found = [first(lines) for _ in range(400)]
    counts = {found[start : start + 20].count("b") for start in range(380)}
    assert counts <= {4, 5, 6}
    assert {first(know({"queue_name": "a"}, {"queue_name": "b"})) for _ in range(60)} == {"a", "b"}


def test_a_higher_priority_is_asked_first_even_where_nothing_was_due() -> None:
    lines = know(
        {"queue_name": "low", "weight": 1000},
        {"queue_name": "high", "priority": 1, "is_due": False},
        {"queue_name": "b"},
    )
    for _ in range(20):
        (asked,) = lines.choose(None, ())
        assert (asked[0].queue_name, len(asked)) == ("high", 3)


def test_lines_where_nothing_was_due_come_behind_those_of_their_priority() -> None:
    lines = know({"queue_name": "empty", "weight": 1e9, "is_due": False}, {"queue_name": "a"}, {"queue_name": "b"})
    assert {lines.choose(None, ())[0][2].queue_name for _ in range(20)} == {"empty"}
    lines.note_claim((1, "empty"), "later", 7)
    assert {line.queue_name for line in lines.choose(None, ())[0] if line.since == "later"} == {"empty"}
    assert first(lines) == "empty"


def test_what_is_passed_over_or_not_served_is_not_asked() -> None:
    rows = [{"migration_id": n, "migration": f"m{n}", "queue_name": name} for n in (1, 2) for name in ("a", "b")]
    lines = know(*rows)

    def asked(*arguments: object) -> set[tuple[int, str]]:
        return {(line.migration_id, line.queue_name) for part in lines.choose(*arguments) for line in part}  # type: ignore[arg-type]

    assert asked(None, [1]) == {(2, "a"), (2, "b")}
    assert asked(None, [(1, "a"), 2]) == {(1, "b")}
    assert asked(["m2"], [(1, "a")]) == {(2, "a"), (2, "b")}
    assert asked(["other"], ()) == set()


def test_of_many_lines_a_few_are_asked_before_the_others() -> None:
    lines = know(*({"queue_name": str(number)} for number in range(30)))
    parts = lines.choose(None, ())
    assert [len(part) for part in parts] == [8, 22]
    assert len({line.queue_name for part in parts for line in part}) == 30


def test_a_look_is_known_for_ten_seconds_and_not_repeated_where_it_walked_far() -> None:
    seconds = 0.0
    lines = WaitingLines(lambda: seconds)
    assert not lines.is_known()
    none_waits = dict.fromkeys((*ROW, "queue_name"))
    assert not lines.note_look([none_waits | {"walked": 1000}])
    assert (lines.is_known(), lines.may_look_again(), lines.choose(None, ())) == (True, True, [])
    seconds = timedelta(seconds=9.9).total_seconds()
    assert lines.is_known()
    seconds = 10
    assert not lines.is_known()
    lines.note_look([none_waits | {"walked": 1001}])
    assert (lines.is_known(), lines.may_look_again()) == (True, False)


def test_a_look_tells_whether_there_is_anything_else_to_try() -> None:
    lines = know({"queue_name": "a"})
    again = ROW | {"queue_name": "a", "walked": 0}
    assert not lines.note_look([again])
    assert lines.note_look([again | {"since_id": 1}])
    assert lines.note_look([again | {"since_id": 1}, again | {"queue_name": "b"}])
    assert not lines.note_look([again | {"since_id": 2, "is_due": False}])
