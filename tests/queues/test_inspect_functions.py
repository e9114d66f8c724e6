"""A user's function gets a readable stream; whatever it does is its object's matter, and ends in time."""

import gzip
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from rowferry_queues.inspect.allowed import ALLOWED_FUNCTIONS, forget_functions
from rowferry_queues.inspect.spec import MiB
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.inspected import MODULE, add, run, use, words_of
from support.queue.inspecting_functions import MAY_END
from support.s3.buckets import Buckets


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration], monkeypatch: pytest.MonkeyPatch) -> Migration:
    monkeypatch.setenv(ALLOWED_FUNCTIONS, MODULE)
    migration = make_migration(moto_buckets, moto_buckets)
    migration.execute("alter table public.avatars add words text, add name text, add lines int")
    return migration


@pytest.fixture
def _hanging() -> Iterator[None]:
    """Let functions hang until the test says that it has seen enough."""
    MAY_END.clear()
    yield
    MAY_END.set()


def running_calls() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "rowferry-function"]


def test_a_function_reads_lines_of_what_is_inflated(site: Migration) -> None:
    """Whole bodies and streams, beside what is computed here."""
    use(site, "count_words", columns={"words": "words", "name": "name", "lines": "lines"})
    lines = b"some words of text\n" * 50_000
    noise = os.urandom(300_000).hex().encode() + b"\n"
    for number, body in enumerate([b"one two\nthree", gzip.compress(lines), gzip.compress(noise), b""]):
        add(site, number, body)
    assert run(site) == {"migrated": 4}
    assert words_of(site) == {0: "3", 1: "200000", 2: "1", 3: "0"}
    rows = site.execute("select name, lines from public.avatars order by id")
    assert [tuple(row.values()) for row in rows] == [(f"{TO}0", 2), (f"{TO}1", 50_000), (f"{TO}2", 1), (f"{TO}3", 0)]


def test_a_function_need_not_read_all(site: Migration) -> None:
    use(site, "read_first", columns={"words": "words", "lines": "lines"})
    body = b"abc\n" + os.urandom(MiB).hex().encode()
    add(site, 1, body)
    assert run(site) == {"migrated": 1}
    assert site.execute("select words, lines from public.avatars") == [{"words": "abc", "lines": 2}]
    use(site, "read_first")
    add(site, 2, b"xyz" + body)
    site.execute("truncate rowferry.batch_queue cascade")
    assert run(site) == {"migrated": 1, "kept": 1}
    assert words_of(site)[2] == "xyz"


FAULTS = {
    "fail": ("FunctionFailed", "the function failed with KeyError: 'body'"),
    "return_list": ("FunctionFailed", "it returned list, not a dict"),
    "return_other": ("FunctionFailed", "the function returned wrods, but no words"),
    "return_much": ("FunctionFailed", "more than 1048576 bytes as words"),
    "leave": ("FunctionFailed", "SystemExit"),
}


@pytest.mark.parametrize("function", FAULTS)
def test_a_function_that_fails_is_the_failure_of_its_object(site: Migration, function: str) -> None:
    use(site, function)
    for number in range(3):
        add(site, number, b"body")
    assert run(site) == {"failed": 3}
    assert site.verdicts() == ["ERROR"]
    reason, words = FAULTS[function]
    _, told, error = site.failure_of(1)
    assert told == reason
    assert words in error


def test_what_a_function_makes_of_an_unreadable_object_does_not_count(site: Migration) -> None:
    use(site, "swallow")
    add(site, 1, gzip.compress(b"content")[:-4])
    add(site, 2, gzip.compress(os.urandom(MiB))[:-4])
    add(site, 3, b"good")
    assert run(site) == {"migrated": 1, "failed": 2}
    assert words_of(site) == {1: None, 2: None, 3: "4"}
    assert {site.failure_of(number)[1] for number in (1, 2)} == {"TruncatedContent"}


@pytest.mark.usefixtures("_hanging")
@pytest.mark.parametrize("function", ["spin", "hang"])
def test_a_function_that_does_not_end_is_given_up(site: Migration, function: str) -> None:
    use(site, function, function_seconds=0.2)
    add(site, 1, b"body")
    add(site, 2, os.urandom(MiB))
    assert run(site) == {"failed": 2}
    assert site.failure_of(1)[1:] == (
        "FunctionTimedOut",
        "FunctionTimedOut: the function did not end within 0.2 s (function_seconds)",
    )
    MAY_END.set()
    wait_for(lambda: not running_calls())


@pytest.mark.usefixtures("_hanging")
def test_calls_that_never_end_stop_the_migration_not_the_process(site: Migration) -> None:
    """Each keeps a thread; no entry behind them is held to be at fault."""
    use(site, "hang", function_seconds=0.05)
    for number in range(20):
        add(site, number, b"body")
    site.enqueue(queue="inspect")
    with site.at_work(queues=["inspect"]) as take_turn:
        take_turn()
    assert site.verdicts() == ["RELEASED"]
    assert site.counts() == {}
    MAY_END.set()
    wait_for(lambda: not running_calls())


def test_a_function_must_be_there_and_allowed(site: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_functions()
    use(site, "not_there")
    add(site, 1, b"body")
    site.write_plan()
    said = site.run("check").stdout
    assert f"The function {MODULE}:not_there cannot be loaded (AttributeError" in said
    use(site, "count_words")
    site.write_plan()
    said = site.run("check", **{ALLOWED_FUNCTIONS: "others, more:one"}).stdout
    assert f"{MODULE}:count_words is not among those that {ALLOWED_FUNCTIONS} allows" in said
    assert run(site) == {"migrated": 1}
    forget_functions()
    site.execute("truncate rowferry.batch_queue cascade")
    site.enqueue(queue="inspect")
    monkeypatch.setenv(ALLOWED_FUNCTIONS, f"{MODULE}:read_first")
    with site.at_work(queues=["inspect"]) as take_turn:
        take_turn()
    assert site.verdicts()[-1] == "RELEASED"
    forget_functions()
