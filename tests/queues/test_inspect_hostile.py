"""Objects and functions that mean harm, or are merely odd, cost neither other objects nor the event loop."""

import gzip
import os
from collections.abc import Callable

import pytest

from rowferry.functions import ALLOWED_FUNCTIONS
from rowferry_lab.servers.fake_s3.store import make_object
from rowferry_queues.inspect.spec import MiB
from support.entries.migration import Migration
from support.queue.inspected import MODULE, add, cut_reads, end_processes, run, use, words_of
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes

ADD_COLUMNS = "alter table public.avatars add words text, add encoding text, add lines int, add size int"


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_FUNCTIONS, MODULE)
    end_processes()


@pytest.fixture
def site(moto_migration: Migration) -> Migration:
    moto_migration.execute(ADD_COLUMNS)
    return moto_migration


def test_all_bytes_are_read(site: Migration) -> None:
    site.plan["queue"] = {"inspect": {"columns": {"encoding": "encoding", "lines": "lines"}}}
    add(site, 1, b"line\n" * MiB)
    add(site, 2, gzip.compress(os.urandom(MiB))[:-9])
    assert run(site) == {"migrated": 1, "failed": 1}
    assert site.failure_of(2)[1] == "TruncatedContent"
    assert site.execute("select lines from public.avatars where id = 1") == [{"lines": MiB}]


ODD_VALUES = ("return_surrogate", "return_nul", "return_huge_number", "return_deep", "return_object", "fail_oddly")


def test_a_value_that_no_row_can_hold_is_the_failure_of_its_object(site: Migration, subtests: pytest.Subtests) -> None:
    for number in range(4):
        add(site, number, b"odd" if number == 2 else b"good")
    for function in ODD_VALUES:
        use(site, f"odd_{function}")
        site.execute("truncate rowferry.batch_queue cascade")
        site.execute("update public.avatars set words = null")
        with subtests.test(function):
            assert run(site) == {"migrated": 3, "failed": 1}
            assert words_of(site) == {0: "good", 1: "good", 2: None, 3: "good"}
            assert site.failure_of(2)[1]


def test_a_function_sees_one_version_of_an_object_from_its_first_byte(make_migration: Callable[..., Migration]) -> None:
    """The connection breaks in the middle, and the object is another one when it is read again."""
    with running_fakes(Deviations()) as (server,), fresh_buckets(server) as buckets:
        migration = make_migration(buckets, buckets)
        migration.execute(ADD_COLUMNS)
        use(migration, "count_words", columns={"words": "words", "size": "size"})
        add(migration, 1, b"a b c\n" * (8 * MiB))
        new = make_object(b"one\n" * MiB, {}, {})
        tried = cut_reads(server, 1, lambda key: server.fake.store.bucket(buckets.production).put(key, new))
        assert run(migration) == {"migrated": 1}
        assert len(tried) == 2
        assert migration.execute("select words, size from public.avatars") == [{"words": str(MiB), "size": 4 * MiB}]
