"""Which tags an object gets: all that it had, with the wanted ones, never more than S3 takes."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowferry.batch import Entry
from rowferry.plan.properties import MAX_TAG_NAME, MAX_TAG_VALUE, MAX_TAGS, find_tag_fault
from rowferry_queues.tag.perform import merge_tags, refuse_unfit
from rowferry_queues.tag.spec import TagConflict
from rowferry_worker.batch.objects import MappedRow

NAMES = st.sampled_from([f"tag-{number}" for number in range(14)])
TAGS = st.dictionaries(NAMES, st.sampled_from(["", "a", "b"]), max_size=12)
PLAIN = re.compile(r"[A-Za-z0-9 +\-=._:/@]*")


@given(found=TAGS, wanted=TAGS)
@example(found={f"tag-{number}": "a" for number in range(10)}, wanted={"tag-3": "b"})
@example(found={f"tag-{number}": "a" for number in range(12)}, wanted={"tag-3": "a"})
@example(found={f"tag-{number}": "a" for number in range(10)}, wanted={"tag-11": "b"})
def test_an_object_keeps_what_it_has_and_gets_what_is_wanted(found: dict[str, str], wanted: dict[str, str]) -> None:
    expected = {**found, **wanted}
    is_equal = wanted.items() <= found.items()
    if len(expected) > MAX_TAGS and not is_equal:
        with pytest.raises(TagConflict, match="TooManyTags"):
            merge_tags(tuple(found.items()), wanted)
        return
    merged = merge_tags(tuple(found.items()), wanted)
    assert (merged is None) == is_equal
    if merged is not None:
        assert len(merged) == len(expected) <= MAX_TAGS
        assert dict(merged) == expected
        assert [name for name, _ in merged][: len(found)] == list(found)  # where they were
        assert merge_tags(merged, wanted) is None  # a second run writes nothing


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_of_ascii_s3_takes_letters_digits_spaces_and_eight_signs(value: str) -> None:
    assert bool(find_tag_fault("tier", value)) == (PLAIN.fullmatch(value) is None)


REFUSED = (
    ("", "a", "has a name of 0 characters, and S3 takes 1 to 128"),
    ("n" * (MAX_TAG_NAME + 1), "a", "has a name of 129 characters"),
    ("𝒜" * 65, "a", "has a name of 130 characters"),
    ("aws:kind", "a", "begins with 'aws:'"),
    ("AWS:kind", "a", "begins with 'aws:'"),
    ("tier!", "a", "has '!' in its name"),
    ("tier", "v" * (MAX_TAG_VALUE + 1), "would have a value of 257 characters, and S3 takes 256"),
    ("tier", "𝒜" * 129, "would have a value of 258 characters"),
    ("tier", "a,b", "would have ',' in its value"),
    ("tier", "a\nb", "would have '\\n' in its value"),
    ("tier", "a\0", "would have '\\x00' in its value"),
    ("tier", "🐈", "would have '🐈' in its value"),
)
TAKEN = ("", " ", "Köln", "東京", "٣", "a+b-c=d.e_f:g/h@i", "v" * 256, "𝒜" * 128)
ROW = MappedRow(Entry("1", "key"))


def test_what_s3_does_not_take_is_a_conflict_that_says_why(subtests: pytest.Subtests) -> None:
    for name, value, words in REFUSED:
        with subtests.test(words):
            assert find_tag_fault(name, value).startswith(words)
            fault = refuse_unfit(ROW, {"fine": "a", name: value}).fault
            assert isinstance(fault, TagConflict)
            assert words in fault.message


def test_what_s3_takes_is_taken() -> None:
    for value in TAKEN:
        assert find_tag_fault("tier", value) == ""
        assert refuse_unfit(ROW, {"tier": value}) is ROW
