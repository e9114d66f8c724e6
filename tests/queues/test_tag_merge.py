"""Which tags an object gets: all that it had, with the wanted ones, never more than S3 takes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowferry.plan.properties import MAX_TAGS
from rowferry_queues.tag.perform import merge_tags
from rowferry_queues.tag.spec import TagConflict

NAMES = st.sampled_from([f"tag-{number}" for number in range(14)])
TAGS = st.dictionaries(NAMES, st.sampled_from(["", "a", "b"]), max_size=12)


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
