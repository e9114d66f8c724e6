"""Objects and functions that mean harm, or are merely odd, cost neither other objects nor the event loop."""

import gzip
import os
from collections.abc import Callable
from typing import Any

import pytest

from rowferry.functions import ALLOWED_FUNCTIONS
from rowferry_lab.servers.fake_s3.store import make_object
from rowferry_queues.inspect.spec import MiB
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.queue.inspected import MODULE, add, cut, end_processes, run, use, words_of
from support.s3.buckets import Buckets, fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_log import RequestLog

ADD_COLUMNS = "alter table public.avatars add words text, add type text, add width int, add height int, add size int"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4) + b"\x08\x06\0\0\0"
SVGS = {
    b"<svg width='10' height='20'/>": (10, 20),
    b"<?xml version='1.0'?><svg width='10cm' height='5mm'/>": (378, 19),
    b"<svg width='10.6' height='20'/>": (11, 20),
    b"<svg width='1%s' height='2'/>" % (b"0" * 400): (None, None),
    b"<svg width='99999999999' height='2'/>": (None, None),
    b"<svg width='x' height='2'/>": (None, None),
}


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_FUNCTIONS, MODULE)
    end_processes()


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    migration = make_migration(moto_buckets, moto_buckets)
    migration.execute(ADD_COLUMNS)
    return migration


def of_images(migration: Migration) -> Migration:
    """Ask for what the beginning of an object tells."""
    columns = {name: name for name in ("type", "width", "height", "size")}
    migration.plan["queue"] = {"inspect": {"columns": columns}}
    return migration


def test_drawings_go_into_integer_columns(site: Migration) -> None:
    """As whole pixels that an integer holds."""
    of_images(site)
    for number, image in enumerate(SVGS):
        add(site, number, image)
    assert run(site) == {"migrated": len(SVGS)}
    rows = site.execute("select width, height from public.avatars order by id")
    assert [tuple(row.values()) for row in rows] == list(SVGS.values())


def make_heads() -> dict[str, tuple[bytes, tuple[Any, ...]]]:
    """Return bodies, and the facts that their beginnings tell."""
    return {
        "plain": (PNG + os.urandom(MiB), ("image/png", 640, 480)),
        "packed": (gzip.compress(PNG + os.urandom(MiB))[:-20], ("image/png", 640, 480)),
        "a bomb": (gzip.compress(bytes(512 * MiB), 1), ("application/octet-stream", None, None)),
        "no image": (b"<p>" * MiB, ("text/plain", None, None)),
        "small": (PNG, ("image/png", 640, 480)),
        "empty": (b"", (None, None, None)),
    }


def test_where_the_head_tells_all_no_more_is_asked_for(logged_migration: Migration, log: RequestLog) -> None:
    """Nor inflated: that the rest is cut short, or too much, does not matter."""
    logged_migration.execute(ADD_COLUMNS)
    heads = make_heads()
    for number, (body, _) in enumerate(heads.values()):
        add(logged_migration, number, body)
    assert run(of_images(logged_migration)) == {"migrated": len(heads)}
    rows = logged_migration.execute("select type, width, height, size from public.avatars order by id")
    assert {name: tuple(row.values()) for name, row in zip(heads, rows, strict=True)} == {
        name: (*expected, len(body)) for name, (body, expected) in heads.items()
    }
    last = list(heads).index("empty")
    asked = [seen for seen in log.seen if seen.method == "GET" and seen.key.startswith(TO)]
    assert {seen.key for seen in asked if "range" not in seen.headers} <= {f"{TO}{last}"}
    assert {seen.headers["range"] for seen in asked if "range" in seen.headers} == {"bytes=0-262143"}


def test_a_server_that_ignores_the_range_is_not_read_to_its_end(logged_migration: Migration, log: RequestLog) -> None:
    """It sends a mebibyte of 64, and nothing more would come."""
    logged_migration.execute(ADD_COLUMNS)
    add(logged_migration, 1, PNG)
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {64 * MiB}\r\nETag: "0"\r\nx-amz-request-id: 1\r\n\r\n'
    with log.answering(lambda seen: seen.key == f"{TO}1", head.encode() + PNG + bytes(MiB)):
        assert run(of_images(logged_migration)) == {"migrated": 1}, logged_migration.failure_of(1)
    assert logged_migration.execute("select width, size from public.avatars") == [{"width": 640, "size": 64 * MiB}]


def test_what_is_computed_of_all_bytes_still_reads_them(site: Migration) -> None:
    site.execute("alter table public.avatars add lines int")
    site.plan["queue"] = {"inspect": {"columns": {"type": "type", "lines": "lines"}}}
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
        tried: list[str] = []

        def interfere(request: Any) -> None:
            if request.operation == "GetObject":
                tried.append(request.key)
                if len(tried) == 1:
                    cut(server)
                else:
                    server.fake.store.bucket(buckets.production).put(request.key, new)

        server.fake.before = interfere
        assert run(migration) == {"migrated": 1}
        assert len(tried) == 2
        assert migration.execute("select words, size from public.avatars") == [{"words": str(MiB), "size": 4 * MiB}]
