"""Which objects go in one PUT: such as pass in a few seconds over the link there is."""

from rowferry.s3.operations import PUT_LIMIT_BYTES
from rowferry_worker.copying.put_limit import ALWAYS_BYTES, PUT_SECONDS, PutLimit
from rowferry_worker.copying.stream_copy import StreamCopy, limit_put
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES
from rowferry_worker.objects.pipe import MOST_SHARE_BYTES, PIPE_BYTES, share_of_pipe
from support.s3.copies import NEW, copy_once, fake_with, options_of

MB = 1_000_000


def test_a_link_is_expected_to_be_fast() -> None:
    assert PutLimit().allows(PUT_LIMIT_BYTES)


def test_the_plan_says_from_which_size_on_objects_go_by_parts() -> None:
    assert limit_put(None, has_md5=True) == PUT_LIMIT_BYTES
    assert limit_put(1000 * MB, has_md5=True) == 1000 * MB
    assert limit_put(1000 * MB, has_md5=False) == limit_put(None, has_md5=False) == STREAM_PART_BYTES


def test_over_a_slow_link_large_objects_go_by_parts() -> None:
    limit = PutLimit()
    for _ in range(9):
        limit.note(100 * MB, 50.0)
    assert not limit.allows(100 * MB)
    assert limit.allows(ALWAYS_BYTES)
    assert limit.allows(int(2 * MB * PUT_SECONDS))


def test_small_objects_tell_nothing_of_the_pace() -> None:
    limit = PutLimit()
    for _ in range(99):
        limit.note(MB, 1.0)
    assert limit.allows(100 * MB)


def test_a_link_that_has_become_faster_is_tried_again() -> None:
    limit = PutLimit()
    limit.note(100 * MB, 40.0)
    turns = next(turn for turn in range(1000) if limit.allows(100 * MB))
    assert 10 < turns < 100
    for _ in range(9):
        limit.note(100 * MB, 0.2)
    assert all(limit.allows(100 * MB) for _ in range(9))


def test_few_large_objects_are_begun_at_once() -> None:
    assert share_of_pipe(1000) == 1000
    assert share_of_pipe(MB) == PIPE_BYTES
    assert share_of_pipe(80 * MB) == 10 * MB
    assert share_of_pipe(1000 * MB) == MOST_SHARE_BYTES


def test_an_object_that_would_pass_too_slowly_goes_by_parts() -> None:
    body = b"x" * (ALWAYS_BYTES + 1)
    for seconds, operation in ((1.0, "PutObject"), (1000.0, "CompleteMultipartUpload")):
        fake, method = fake_with(body), StreamCopy()
        method._put_limit.note(100 * MB, seconds)
        copy_once(fake, options_of(method, "supported"))
        assert f"{operation} production" in fake.operations
        assert fake.production[NEW].body == body
